export { bubblewrapSandbox, defaultLimits, type BubblewrapOptions } from './bubblewrap-sandbox.ts'
