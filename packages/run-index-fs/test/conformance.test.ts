import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { RunIndex } from '@tiltyard/core'
import { registerCases, runIndexCases } from '@tiltyard/testkit'
import { test } from 'vitest'

import { fsRunIndex } from '../src/index.ts'

const folders = new Map<RunIndex, string>()
const folderOf = (index: RunIndex) => folders.get(index) ?? ''

registerCases(
  test,
  runIndexCases({
    async create() {
      const folder = await mkdtemp(join(tmpdir(), 'tiltyard-runs-'))
      const index = fsRunIndex({ folder })
      folders.set(index, folder)
      return index
    },
    reopen: async (index) => fsRunIndex({ folder: folderOf(index) }),
    release: (index) => rm(folderOf(index), { recursive: true, maxRetries: 10, retryDelay: 50 }),
  }),
)
