/**
 * Trains the small policy's vocabulary and writes models/desk-640.json, an ordinary tokenizer.json: 256 bytes, names, entries
 * learned from a seeded corpus, and the markers of the Qwen layouts. The same script always writes the same bytes.
 * Run with `tsx scripts/train-bpe.ts`.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import { byteAlphabet } from '../src/bpe/byte-alphabet.ts'
import { patternSplitter } from '../src/split/splitter.ts'
import { deskCorpus, usualNames } from './desk-corpus.ts'

const SIZE = 640
const SEED = 20_261_129
const DOCUMENTS = 3_000

/**
 * Qwen's pattern, in which digits stand alone so that numbers are copied digit by digit, after what is a piece of its own: a tag
 * with its line end, the punctuation and keys of JSON up to a value, and the space before a name, a number sign or an address.
 * Punctuation joins no word. So what is copied is the same pieces wherever it stands.
 */
const PATTERN = [
  String.raw`<[^<>\s]*>[\r\n]*`,
  String.raw`(?:[^\p{L}\p{N}\s]*[ ]?[^\p{L}\p{N}\s]*"[a-z_]+":[ ])+[\[{"]*`,
  String.raw` (?=[\p{Lu}#]|\p{L}+[._]\p{L})`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
].join('|')

const special = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<|vision_start|>',
  '<|vision_end|>',
  '<|image_pad|>',
]
/** Added, though not flagged special; as in Qwen's own files. */
const plain = [
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
  '<think>',
  '</think>',
]

const alphabet = byteAlphabet()

/** The text of the file. */
export function deskTokenizerJson(): string {
  const learned = learn(countPieces(), SIZE - 256 - special.length - plain.length)
  const tokens = [...alphabet, ...learned.map(({ token }) => token)]
  const byteLevel = {
    type: 'ByteLevel',
    add_prefix_space: false,
    trim_offsets: false,
    use_regex: false,
  }
  const definition = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [...special, ...plain].map((content, index) => ({
      id: tokens.length + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: index < special.length,
    })),
    normalizer: { type: 'NFC' },
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: PATTERN }, behavior: 'Isolated', invert: false },
        byteLevel,
      ],
    },
    post_processor: byteLevel,
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: true,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: learned.flatMap(({ pair }) => (pair === undefined ? [] : [pair])),
    },
  }
  return `${JSON.stringify(definition, undefined, 1)}\n`
}

interface CountedPiece {
  symbols: readonly string[]
  readonly count: number
}

function countPieces(): CountedPiece[] {
  const split = patternSplitter(PATTERN)
  const encoder = new TextEncoder()
  const counts = new Map<string, number>()
  for (const text of deskCorpus(SEED, DOCUMENTS).flat()) {
    split(text, 0, text.length, (start, end) => {
      const piece = text.slice(start, end)
      counts.set(piece, (counts.get(piece) ?? 0) + 1)
    })
  }
  return [...counts].map(([piece, count]) => ({
    symbols: Array.from(encoder.encode(piece), (byte) => alphabet[byte]!),
    count,
  }))
}

interface Learned {
  readonly token: string
  /** Absent for a whole piece, which is looked up without merging. */
  readonly pair?: readonly [string, string]
}

/**
 * First the usual names whole, as in a question and as in an address. Then each entry is the one that saves most tokens of the corpus: the merge of a pair, or a whole piece at once, which needs no
 * entries for the steps to it. Among equals the first in the order of code units.
 */
function learn(pieces: readonly CountedPiece[], wanted: number): readonly Learned[] {
  const entries: Learned[] = []
  const addWhole = (token: string) => {
    entries.push({ token })
    for (const piece of pieces) {
      if (piece.symbols.join('') === token) piece.symbols = [token]
    }
  }
  for (const name of usualNames) {
    addWhole(name)
    addWhole(name.toLowerCase())
  }
  while (entries.length < wanted) {
    const savings = new Map<string, number>()
    for (const { symbols, count } of pieces) {
      for (let at = 0; at + 1 < symbols.length; at += 1) {
        const pair = `${symbols[at]} ${symbols[at + 1]}`
        savings.set(pair, (savings.get(pair) ?? 0) + count)
      }
      if (symbols.length > 2) savings.set(symbols.join(''), count * (symbols.length - 1))
    }
    const [best] = [...savings].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
    if (best === undefined) break
    const [left, right] = best[0].split(' ')
    if (right === undefined) {
      addWhole(left!)
    } else {
      entries.push({ token: left! + right, pair: [left!, right] })
      for (const piece of pieces) piece.symbols = joined(piece.symbols, left!, right)
    }
  }
  return entries
}

function joined(symbols: readonly string[], left: string, right: string): readonly string[] {
  if (!symbols.includes(left)) return symbols
  const result: string[] = []
  for (let at = 0; at < symbols.length; at += 1) {
    if (symbols[at] === left && symbols[at + 1] === right) {
      result.push(left + right)
      at += 1
    } else {
      result.push(symbols[at]!)
    }
  }
  return result
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(new URL('../models/desk-640.json', import.meta.url), deskTokenizerJson())
}
