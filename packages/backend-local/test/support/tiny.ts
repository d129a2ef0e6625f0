import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Backend } from '@tiltyard/core'

import type { LocalBackendOptions } from '../../src/index.ts'
import { localBackendOn } from '../../src/local-backend.ts'
import { inlineWorker } from './inline-worker.ts'

/** A model small enough for a test, with every part of a large one. */
export const tinyShape = {
  vocabularySize: 64,
  width: 32,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 8,
  hidden: 48,
  contextWindow: 256,
} as const

/** CI runs these tests with the WebAssembly build too. */
const executor = process.env['TILTYARD_LOCAL_EXECUTOR'] === 'web' ? 'web' : 'auto'

export function tinyBackend(options: Partial<LocalBackendOptions> = {}): Backend {
  return localBackendOn(inlineWorker, {
    models: { tiny: { shape: tinyShape } },
    folder: mkdtempSync(join(tmpdir(), 'tiltyard-local-')),
    executor,
    threads: 2,
    ...options,
  })
}
