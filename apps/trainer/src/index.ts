export { main } from './main.ts'
export type { Interrupts, Terminal } from './exit.ts'
