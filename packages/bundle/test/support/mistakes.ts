import { ConfigError, type Mistake } from '@tiltyard/core'
import { expect } from 'vitest'

import type { BundleModule } from '../../src/index.ts'
import type { BundleParts } from './make-bundle.ts'

/** A bundle with one thing wrong, and what is said of it. */
export interface MistakenBundle {
  readonly name: string
  readonly parts: BundleParts
  readonly mistakes: readonly Mistake[]
}

/** What a load that must fail says. */
export async function mistakesOf(load: () => Promise<unknown>): Promise<readonly Mistake[]> {
  const error = await load().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).mistakes
}

export const findUser = {
  name: 'find_user',
  description: 'Finds.',
  parameters: { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] },
  run: () => 'ann',
} as const

export const withFindUser: BundleModule = { tools: [findUser], verifiers: { always: () => 1 } }
