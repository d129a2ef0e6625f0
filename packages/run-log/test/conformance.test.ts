import type { RunIndex } from '@tiltyard/core'
import { registerCases, runIndexCases } from '@tiltyard/testkit'
import { describe, test } from 'vitest'

import { indexOver, memoryBlobs, type MemoryBlobs } from './support/memory-blobs.ts'

describe.each([
  { blobs: 'blobs that grow', growing: true },
  { blobs: 'blobs that are written once', growing: false },
])('over $blobs', ({ growing }) => {
  const stores = new Map<RunIndex, MemoryBlobs>()
  registerCases(
    test,
    runIndexCases({
      async create() {
        const blobs = memoryBlobs(growing)
        const index = indexOver(blobs)
        stores.set(index, blobs)
        return index
      },
      reopen: async (index) => indexOver(stores.get(index) ?? memoryBlobs(growing)),
    }),
  )
})
