export { serveExplorer, type Explorer, type ExplorerOptions } from './serve.ts'
export type { ExplorerAppOptions } from './server/app.ts'
