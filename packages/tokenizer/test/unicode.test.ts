import { nfcNormalizer, Tokenizer } from '@anush008/tokenizers'
import { expect, test } from 'vitest'

import { pinnedNfc } from '../src/unicode/nfc.ts'
import { generalCategory, whiteSpace } from '../src/unicode/properties.ts'
import { CODE_POINTS, complement, union, type CodePointSet } from '../src/unicode/ranges.ts'

/** Every code point but the halves of pairs; the unassigned planes thinned out. */
const points = Array.from({ length: CODE_POINTS }, (_, point) => point).filter((point) => {
  if (point >= 0xd800 && point < 0xe000) return false
  return (point >= 0x32000 && point < 0xe0000) || point >= 0xe0200 ? point % 97 === 0 : true
})

test.each<[string, CodePointSet]>([
  ...['L', 'Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'M', 'N', 'P', 'S'].map((name): [string, CodePointSet] => [
    `\\p{${name}}`,
    generalCategory(name)!,
  ]),
  ['\\s', whiteSpace],
  ['\\S', complement(whiteSpace)],
])('%s holds the characters that the native tokenizers put there', (pattern, set) => {
  const split = Tokenizer.fromString(
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
  const member = new Uint8Array(CODE_POINTS)
  for (let at = 0; at < set.length; at += 2) member.fill(1, set[at], set[at + 1])
  const differing: string[] = []
  for (let start = 0; start < points.length; start += 4096) {
    const block = points.slice(start, start + 4096)
    // Each twice: one that matches stands alone, one that doesn't has company.
    const text = block.map((point) => String.fromCodePoint(point, point)).join('')
    const alone = new Uint8Array(block.length)
    let at = 0
    for (const [piece] of split.preTokenizeString(text)) {
      const length = Array.from(piece).length
      if (length === 1) alone[at >> 1] = 1
      at += length
    }
    for (const [index, point] of block.entries()) {
      if (alone[index] !== member[point]) differing.push(point.toString(16))
    }
  }
  expect(differing).toEqual([])
})

test('text is composed as the native tokenizers compose it', () => {
  const native = nfcNormalizer()
  const own = pinnedNfc()
  const differing: string[] = []
  for (const point of points) {
    const char = String.fromCodePoint(point)
    const parts = char.normalize('NFD')
    const texts = [char, `a\u0315${char}\u0300`]
    if (parts !== char) texts.push(parts, `${parts}\u0323`)
    if (texts.some((text) => own(text) !== native.normalizeString(text))) {
      differing.push(point.toString(16))
    }
  }
  expect(differing).toEqual([])
})

test('sets of code points', () => {
  expect(
    union([
      [5, 7],
      [1, 3],
      [2, 5],
    ]),
  ).toEqual([1, 7])
  expect(complement([0, 5, 9, CODE_POINTS])).toEqual([5, 9])
  expect(complement([])).toEqual([0, CODE_POINTS])
  expect(generalCategory('Xx')).toBeUndefined()
})
