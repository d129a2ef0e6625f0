import { test } from 'vitest'

import { memoryRunIndex, registerCases, runIndexCases, type MemoryRunIndex } from '../src/index.ts'

registerCases(
  test,
  runIndexCases({
    create: async () => memoryRunIndex(),
    reopen: async (index) => (index as MemoryRunIndex).reopen(),
    lacks: { upkeep: 'what is in memory needs none' },
  }),
)
