import { describe, test } from 'vitest'

import {
  envCases,
  registerCases,
  scriptedEnv,
  scriptedSource,
  taskSourceCases,
} from '../src/index.ts'

describe('a scripted Env', () => {
  registerCases(
    test,
    envCases({
      create: async () => scriptedEnv(),
      replies: [{ role: 'assistant', content: 'done' }],
    }),
  )
})

describe('a scripted source', () => {
  registerCases(
    test,
    taskSourceCases({ create: async () => scriptedSource({ open: () => scriptedEnv() }) }),
  )
})
