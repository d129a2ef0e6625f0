import { readFile } from 'node:fs/promises'

import { Tokenizer as NativeTokenizer } from '@anush008/tokenizers'
import { expect, test } from 'vitest'

import { deskTokenizerJson } from '../scripts/train-bpe.ts'
import { deskTokenizerFile, loadTokenizer } from '../src/index.ts'

const desk = await loadTokenizer(deskTokenizerFile)

test('the small policy’s vocabulary has 640 entries: bytes first, the Qwen markers last', () => {
  expect(desk.vocabularySize).toBe(640)
  expect(Array.from({ length: 256 }, (_, byte) => [...desk.bytes(byte)])).toEqual(
    Array.from({ length: 256 }, (_, byte) => [byte]),
  )
  expect([...desk.markers]).toEqual(
    [
      '<|endoftext|>',
      '<|im_start|>',
      '<|im_end|>',
      '<|vision_start|>',
      '<|vision_end|>',
      '<|image_pad|>',
      '<tool_call>',
      '</tool_call>',
      '<tool_response>',
      '</tool_response>',
      '<think>',
      '</think>',
    ].map((marker, index) => [marker, 628 + index]),
  )
})

test('the vocabulary is what its script writes', async () => {
  expect(deskTokenizerJson()).toBe(await readFile(deskTokenizerFile, 'utf8'))
})

test('numbers are written digit by digit, tags and JSON keys in few entries', () => {
  expect(spell('09620')).toEqual(['0', '9', '6', '2', '0'])
  expect(spell('<parameter=first_name>\nAda\n</parameter>\n')).toEqual([
    '<parameter=first_name>\n',
    'Ada',
    '\n',
    '</parameter>\n',
  ])
})

test.each([
  ['I am Mei Muller, zip 09620.', '<parameter=last_name>\nMuller\n</parameter>', 'Muller'],
  ['My e-mail is mei.muller42@example.com.', 'mei_muller_1234', 'muller'],
  ['User id of mei.okoro42@example.com?', '\nmei.okoro42@example.com\n', 'mei.okoro42@example.com'],
  ['Is #W1234567 there?', '<parameter=id>\n#W1234567\n', '#W1234567'],
])('“%s” and “%s” spell “%s” with the same entries', (one, other, copied) => {
  const spelled = spell(copied).join('|')
  expect(spell(one).join('|')).toContain(`|${spelled}|`)
  expect(spell(other).join('|')).toContain(spelled)
})

test('gives the ids of the native tokenizers on text of the desk', async () => {
  const json = JSON.parse(await readFile(deskTokenizerFile, 'utf8')) as object
  const native = NativeTokenizer.fromString(JSON.stringify({ ...json, added_tokens: [] }))
  const texts = [
    'I am Yusuf Rossi, zip 09620. What is my customer id?',
    '{"order_id": "#W1234567", "status": "delivered", "total": 12.50}',
    'naïve café — “quotes”, 日本語, emoji 👩‍👩‍👧, e\u0301 and \u{1F1E9}\u{1F1EA}',
    '<|im_end|>\n<|im_start|>system',
    ' \t\r\n\n  x ',
    '',
  ]
  for (const text of texts) {
    const expected = await native.encode(text, undefined, { addSpecialTokens: false })
    expect([...desk.encode(text)]).toEqual(expected.getIds())
  }
})

function spell(text: string): readonly string[] {
  return Array.from(desk.encode(text), (id) => desk.decode([id]))
}
