import { backendCases, registerCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { tinyBackend } from './support/tiny.ts'

describe('full weights', () => {
  registerCases(
    test,
    backendCases({
      create: async () => tinyBackend(),
      model: 'tiny',
      adaptation: 'full',
      lacks: { stopStrings: 'needs a tokenizer; its own test gives one' },
    }),
  )
})

describe('adapters', () => {
  registerCases(
    test,
    backendCases({
      create: async () => tinyBackend(),
      model: 'tiny',
      lacks: { stopStrings: 'needs a tokenizer; its own test gives one' },
    }),
  )
})
