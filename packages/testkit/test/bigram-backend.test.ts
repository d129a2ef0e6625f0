import { describe, test } from 'vitest'

import { backendCases, bigramBackend, bigramText, registerCases } from '../src/index.ts'

describe('the bigram backend keeps the contract', () => {
  registerCases(
    test,
    backendCases({ create: async () => bigramBackend(), model: 'bigram', decode: bigramText }),
  )
})
