import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { tokenPrompt } from '@tiltyard/core'
import { expect, test, vi } from 'vitest'

import type { Policy } from '../../src/sample/policy.ts'
import { tinyBackend } from '../support/tiny.ts'

const made = vi.hoisted(() => [] as WeakRef<Policy>[])
vi.mock(import('../../src/sample/policy.ts'), async (original) => {
  const { createPolicy, ...others } = await original()
  return {
    ...others,
    createPolicy(options) {
      const policy = createPolicy(options)
      made.push(new WeakRef(policy))
      return policy
    },
  }
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Policies that something still holds. */
function held(): number {
  collectGarbage()
  return made.filter((policy) => policy.deref() !== undefined).length
}

test('a closed sampler is let go, whether its calls were answered or left', async () => {
  const backend = tinyBackend()
  const stays = await backend.sampler({ model: 'tiny' })
  for (const leaves of [false, true]) {
    const sampler = await backend.sampler({ model: 'tiny' })
    const leaving = new AbortController()
    const prompt = tokenPrompt([1, 2, 3])
    const call = sampler.sample({ prompt, maxTokens: 20 }, { signal: leaving.signal })
    if (leaves) leaving.abort(new Error('enough'))
    await Promise.allSettled([call])
    await sampler.close()
  }
  expect(made).toHaveLength(3)
  await expect.poll(held).toBe(1)
  await stays.close()
  await backend.close()
})
