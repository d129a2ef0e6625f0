export { fsRunIndex, type FsRunIndexOptions } from './fs-run-index.ts'
