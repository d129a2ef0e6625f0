import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import {
  byteTokenizer,
  checkVectors,
  formatVectorReport,
  registerCases,
  rendererCases,
} from '@tiltyard/testkit'

import { fromTemplate, llamaRenderer } from '../src/index.ts'

const tokenizer = byteTokenizer([
  '<|begin_of_text|>',
  '<|end_of_text|>',
  '<|start_header_id|>',
  '<|end_header_id|>',
  '<|eot_id|>',
])

registerCases(
  test,
  rendererCases({
    create: (given) => llamaRenderer({ tokenizer: given, date: '15 Jan 2026' }),
    tokenizer,
    lacks: {
      parallelCalls: 'Llama 3 calls one tool a turn',
      textBesideCalls: 'the template drops text beside a call',
    },
  }),
)

void test('writes what the official template writes', () => {
  const file = new URL('../../vectors/llama3_1.json', import.meta.url)
  const json: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const report = checkVectors({
    files: [{ name: 'llama3_1', json }],
    renderer: fromTemplate,
    tokenizer,
  })
  assert.equal(formatVectorReport(report), '5 passed, 0 failed')
})
