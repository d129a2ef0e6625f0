import { Tokenizer as NativeTokenizer } from '@anush008/tokenizers'
import { describe, expect, test } from 'vitest'

import { loadTokenizer } from '../src/index.ts'
import { sentencePieceBpe, unigram, wordPiece } from './kinds.ts'

const samples = [
  'the order is packed',
  'The orders: unpacked, is the order packed?!',
  '  the  order ',
  'code 日本 x',
  '',
]

describe.each([
  { kind: 'WordPiece', definition: wordPiece },
  { kind: 'Unigram', definition: unigram },
  { kind: 'SentencePiece BPE', definition: sentencePieceBpe },
])('$kind', ({ definition }) => {
  test('gives the ids and the text of the native tokenizers', async () => {
    const tokenizer = await loadTokenizer(definition)
    const native = NativeTokenizer.fromString(JSON.stringify({ ...definition, added_tokens: [] }))
    const whole = NativeTokenizer.fromString(JSON.stringify(definition))
    for (const text of samples) {
      const ids = tokenizer.encode(text)
      const expected = await native.encode(text, undefined, { addSpecialTokens: false })
      expect([text, ...ids]).toEqual([text, ...expected.getIds()])
      expect(tokenizer.decode(ids)).toBe(await whole.decode([...ids], false))
    }
  })
})

test('bytes of single tokens: joints, spaces and byte tokens are what they stand for', async () => {
  expect(await texts(wordPiece, [2, 3, 7])).toEqual(['[SEP]', ' the', 'ed'])
  expect(await texts(unigram, [4, 1])).toEqual([' the', '<s>'])
  expect(await texts(sentencePieceBpe, [3 + 0x41, 999])).toEqual(['A', ''])
})

test('a kind that nobody knows is an error that says so', async () => {
  const definition = { ...wordPiece, model: { type: 'Oracle', vocab: {} } }
  await expect(loadTokenizer(definition, { name: 'delphi' })).rejects.toThrow(
    /tokenizer delphi: .*a model of type Oracle.*@huggingface\/tokenizers/,
  )
})

async function texts(definition: object, ids: readonly number[]): Promise<readonly string[]> {
  const tokenizer = await loadTokenizer(definition)
  return ids.map((id) => new TextDecoder().decode(tokenizer.bytes(id)))
}
