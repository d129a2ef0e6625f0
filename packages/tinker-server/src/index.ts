export { folderLedgerStore, memoryLedgerStore, type LedgerStore } from './ledger.ts'
export type { TinkerServerLimits, TinkerServerOptions } from './options.ts'
export { tinkerServer, type ListenOptions, type TinkerServer } from './tinker-server.ts'
