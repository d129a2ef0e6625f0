import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One id per byte, and one to end with. */
export const BYTE_VOCABULARY = 257

/** A tokenizer as others load it (`tokenizer.json`): bytes under the characters that GPT-2 gave them, no merges. */
export async function writeByteTokenizer(folder: string): Promise<void> {
  let next = 256
  const bytes = Array.from({ length: 256 }, (_, byte) => byte)
  const vocab = Object.fromEntries(
    bytes.map((byte) => [String.fromCodePoint(visible(byte) ? byte : next++), byte]),
  )
  const byteLevel = {
    type: 'ByteLevel',
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: false,
  }
  const end = { id: 256, content: '<|end|>', special: true }
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false }
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [{ ...end, ...flags }],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges: [],
    },
  }
  const config = {
    tokenizer_class: 'PreTrainedTokenizerFast',
    eos_token: end.content,
    model_max_length: 512,
  }
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer))
  await writeFile(join(folder, 'tokenizer_config.json'), JSON.stringify(config))
}

function visible(byte: number): boolean {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
}
