import { readFileSync } from 'node:fs'

import { Tokenizer as NativeTokenizer } from '@anush008/tokenizers'
import { registerCases, tokenizerCases } from '@tiltyard/testkit'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { describe, expect, test } from 'vitest'

import { describeWith } from '../../support/machine.ts'
import { families, vocabulary } from '../../support/vocabularies.ts'
import { randomTexts, realTexts } from './texts.ts'

const STRINGS = 20_000
const REAL_CHARACTERS = 1_000_000
/** Strings that the native engine takes at once. */
const BATCH = 1_000

for (const family of families) {
  describeWith(vocabulary(family), `${family}: the ids of the native tokenizers`, parity)
}
describe('desk: the ids of the native tokenizers', () => {
  parity(deskTokenizerFile)
})

function parity(file: string | URL): void {
  // Markers are taken from the native engine: there text that spells one becomes one.
  const { post_processor: _, ...json } = JSON.parse(readFileSync(file, 'utf8')) as Record<
    string,
    unknown
  >
  const native = NativeTokenizer.fromString(JSON.stringify({ ...json, added_tokens: [] }))
  const loading = loadTokenizer(file)

  const differences = async (texts: readonly string[]) => {
    const tokenizer = await loading
    const found: string[] = []
    let tokens = 0
    for (let start = 0; start < texts.length; start += BATCH) {
      const batch = texts.slice(start, start + BATCH)
      const expected = await native.encodeBatch(batch, { addSpecialTokens: false })
      for (const [index, text] of batch.entries()) {
        const ids = expected[index]!.getIds()
        tokens += ids.length
        if (!equal(tokenizer.encode(text), ids)) found.push(text)
      }
    }
    return { found, tokens }
  }

  test(`on ${STRINGS} generated strings, and the text back`, async () => {
    const texts = randomTexts(7, STRINGS)
    const { found, tokens } = await differences(texts)
    expect(found).toEqual([])
    expect(tokens).toBeGreaterThan(STRINGS)
    const tokenizer = await loading
    const sample = texts.slice(0, BATCH).map((text) => tokenizer.encode(text))
    const decoded = await native.decodeBatch(
      sample.map((ids) => [...ids]),
      false,
    )
    expect(sample.map((ids) => tokenizer.decode(ids))).toEqual(decoded)
  })

  test(`on more than ${REAL_CHARACTERS} characters that people wrote`, async () => {
    const texts = realTexts()
    expect(texts.join('').length).toBeGreaterThan(REAL_CHARACTERS)
    expect((await differences(texts)).found).toEqual([])
  })

  test('on long runs, lone letters and half characters', async () => {
    const texts = [
      'a'.repeat(5_000),
      ' '.repeat(3_000),
      'ab'.repeat(2_000),
      '漢字'.repeat(500),
      '\n'.repeat(999),
      '0123456789'.repeat(300),
      '\uFFFD\uFFFD',
      'e\u0301'.repeat(200),
    ]
    expect((await differences(texts)).found).toEqual([])
  })

  registerCases(test, tokenizerCases({ create: () => loading }))
}

function equal(left: Int32Array, right: readonly number[]): boolean {
  return left.length === right.length && right.every((id, index) => id === left[index])
}
