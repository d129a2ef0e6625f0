import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Backend, Tokenizer } from '@tiltyard/core'
import { byteTokenizer } from '@tiltyard/testkit'
import { afterAll } from 'vitest'

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

/** What `spellingTokenizer` makes of ids: `<7>`, `<12>`, so that their texts differ in length too. */
export function spelled(ids: Iterable<number>): string {
  return Array.from(ids, (id) => `<${id}>`).join('')
}

export const spellingTokenizer: Tokenizer = {
  ...byteTokenizer([]),
  bytes: (id) => new TextEncoder().encode(spelled([id])),
}

/** CI runs these tests with the WebAssembly build too. */
const executor = process.env['TILTYARD_LOCAL_EXECUTOR'] === 'web' ? 'web' : 'auto'

const folders: string[] = []
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** An empty folder, there until the test file is done. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tiltyard-local-'))
  folders.push(folder)
  return folder
}

export function tinyBackend(options: Partial<LocalBackendOptions> = {}): Backend {
  return localBackendOn(inlineWorker, {
    models: { tiny: { shape: tinyShape } },
    folder: freshFolder(),
    executor,
    threads: 2,
    ...options,
  })
}
