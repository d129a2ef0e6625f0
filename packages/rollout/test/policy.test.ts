import { charRenderer, scriptedSampler } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createPolicyPointer } from '../src/index.ts'

function policyOf(step: number) {
  const sampler = scriptedSampler(['x'], { version: { id: `v${step}`, step } })
  return { sampler, renderer: charRenderer(), sampling: {} }
}

test('a former policy is let go when its last episode is over, not before', async () => {
  const [first, second] = [policyOf(0), policyOf(1)]
  const pointer = createPolicyPointer(first)
  const leases = [pointer.take(), pointer.take()]
  const moved = pointer.move(second)
  expect(pointer.current).toBe(second)
  expect(pointer.take().policy).toBe(second)
  leases[0]!.release()
  leases[0]!.release()
  await Promise.resolve()
  expect(first.sampler.closed).toBe(false)
  leases[1]!.release()
  await moved
  expect(first.sampler.closed).toBe(true)
  expect(second.sampler.closed).toBe(false)
})

test('a former policy that nobody uses is let go at once', async () => {
  const [first, second] = [policyOf(0), policyOf(1)]
  const gone: number[] = []
  const pointer = createPolicyPointer(first, async ({ sampler }) => {
    gone.push(sampler.version.step)
  })
  pointer.take().release()
  await pointer.move(second)
  expect(gone).toEqual([0])
})
