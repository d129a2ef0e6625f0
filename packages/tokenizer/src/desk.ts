/**
 * The small policy's vocabulary, an ordinary `tokenizer.json` of 640 entries: 256 bytes, the names, words and tags of a store desk,
 * and the markers of the Qwen layouts. `scripts/train-bpe.ts` made it.
 */
export const deskTokenizerFile: URL = new URL('../models/desk-640.json', import.meta.url)
