import { backendCases, registerCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { testExecutor } from './support/engine.ts'
import { tinyBackend } from './support/tiny.ts'

const { name } = await testExecutor()
const lacks = {
  stopStrings: 'needs a tokenizer; its own test gives one',
  ...(name === 'onnxruntime-web'
    ? { deterministic: 'this build rounds rows of some shapes by how many they are' }
    : {}),
}

describe('full weights', () => {
  registerCases(
    test,
    backendCases({ create: async () => tinyBackend(), model: 'tiny', adaptation: 'full', lacks }),
  )
})

describe('adapters', () => {
  registerCases(test, backendCases({ create: async () => tinyBackend(), model: 'tiny', lacks }))
})
