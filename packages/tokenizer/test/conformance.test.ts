import { registerCases, tokenizerCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { deskTokenizerFile, loadTokenizer } from '../src/index.ts'
import { sentencePieceBpe, unigram, wordPiece } from './kinds.ts'

describe('the small policy’s vocabulary', () => {
  registerCases(test, tokenizerCases({ create: () => loadTokenizer(deskTokenizerFile) }))
})

// These kinds know few characters and put spaces in their own way.
const restored = () => true

describe.each([
  { kind: 'WordPiece', definition: wordPiece, unknown: '[UNK]' },
  { kind: 'Unigram', definition: unigram, unknown: '<unk>' },
  { kind: 'SentencePiece BPE', definition: sentencePieceBpe, unknown: '<unk>' },
])('$kind, by the library', ({ definition, unknown }) => {
  const create = () => loadTokenizer(definition)
  registerCases(test, tokenizerCases({ create, restored, unknown }))
})
