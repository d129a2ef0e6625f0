import { test } from 'vitest'

import { byteTokenizer, registerCases, tokenizerCases } from '../src/index.ts'

registerCases(test, tokenizerCases({ create: async () => byteTokenizer(['<|end|>', '<|user|>']) }))
