export { deskTokenizerFile } from './desk.ts'
export { loadTokenizer, type TokenizerOptions } from './load.ts'
