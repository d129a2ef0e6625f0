import { Tokenizer } from '@anush008/tokenizers'
import { randomStream } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { readPattern, UnknownPattern } from '../src/split/pattern.ts'
import { patternSplitter, splitterChain, type Splitter } from '../src/split/splitter.ts'

const patterns = {
  qwen: String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  'qwen 3.5': String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  gpt2: String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  o200k: String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  'gaps and negations': String.raw`\P{L}{2,}|[一-龥぀-ゟ]+|\x41\d\D`,
} as const

function pieces(split: Splitter, text: string): readonly string[] {
  const found: string[] = []
  split(text, 0, text.length, (start, end) => found.push(text.slice(start, end)))
  return found
}

function native(pattern: string): (text: string) => readonly string[] {
  const tokenizer = Tokenizer.fromString(
    JSON.stringify({
      version: '1.0',
      added_tokens: [],
      pre_tokenizer: {
        type: 'Split',
        pattern: { Regex: pattern },
        behavior: 'Isolated',
        invert: false,
      },
      model: { type: 'WordLevel', vocab: { unknown: 0 }, unk_token: 'unknown' },
    }),
  ).getPreTokenizer()!
  return (text) => tokenizer.preTokenizeString(text).map(([piece]) => piece)
}

describe.each(Object.entries(patterns))('%s', (_, pattern) => {
  test('cuts where the native tokenizers cut', () => {
    const split = patternSplitter(pattern)
    const expected = native(pattern)
    const random = randomStream(5, 'split')
    const parts =
      "'s|'RE|'ſ| |  |\n|\r\n|\t|\u0085|\uFEFF|\u3000|A|Bc|ǅ|d|12|٣|½|.|!?|/|_|é|e\u0301|日本|ひ|😀|𝔸|\u{1F1E9}|A1x".split(
        '|',
      )
    for (let round = 0; round < 2_000; round += 1) {
      const text = Array.from(
        { length: 1 + random.integer(8) },
        () => parts[random.integer(parts.length)]!,
      ).join('')
      expect(pieces(split, text)).toEqual(expected(text))
    }
  })
})

test('splitters in a chain each cut the pieces of the one before', () => {
  const split = splitterChain([patternSplitter('\\p{N}{1,3}'), patternSplitter('[a-c]+')])
  expect(pieces(split, 'xab1234cz')).toEqual(['x', 'ab', '123', '4', 'c', 'z'])
  expect(pieces(splitterChain([]), 'xab')).toEqual(['xab'])
})

test('bounds count UTF-16 units, also beyond the basic plane and for halves of pairs', () => {
  const split = patternSplitter(patterns.qwen)
  for (const text of ['😀 a😀b', '\uD83D', 'a\uDE00\uD83Db', '𝔸𝔸 x']) {
    expect(pieces(split, text).join('')).toBe(text)
  }
})

test.each([
  'a++',
  '(?>a)',
  '(?x:a)',
  '[a[b]]',
  '[a&&b]',
  '\\p{Greek}',
  '^a',
  'a$',
  '.',
  '(a',
  'a)',
  '[a',
  '\\b',
  '(?i:é)',
])('%s is left to another engine', (pattern) => {
  expect(() => readPattern(pattern)).toThrow(UnknownPattern)
})
