import { backendCases, registerCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { testExecutor } from './support/engine.ts'
import { spelled, spellingTokenizer, tinyBackend } from './support/tiny.ts'

const { name } = await testExecutor()
const options = {
  create: async () => tinyBackend({ tokenizer: spellingTokenizer }),
  model: 'tiny',
  decode: spelled,
  lacks:
    name === 'onnxruntime-web'
      ? { deterministic: 'this build rounds rows of some shapes by how many they are' }
      : {},
}

describe('full weights', () => {
  registerCases(test, backendCases({ ...options, adaptation: 'full' }))
})

describe('adapters', () => {
  registerCases(test, backendCases(options))
})
