import { tokenChunk, type Datum } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { tinyBackend } from '../support/tiny.ts'

const loss = { name: 'cross_entropy' } as const
const adam = { learningRate: 0.01 }

const datum = (weight: number): Datum => ({
  input: [tokenChunk([1, 2, 3])],
  targets: Int32Array.of(2, 3, 4),
  weights: new Float32Array(3).fill(weight),
})

test('F45: a step that was sent behind a gradient that isn’t finite is not made; one after the answer is', async () => {
  const backend = tinyBackend()
  const learner = await backend.learner({ model: 'tiny', adaptation: 'full' })
  const sent = await Promise.allSettled([
    learner.forwardBackward([datum(1)], loss),
    learner.forwardBackward([datum(3e38)], loss),
    learner.optimStep(adam),
  ])
  expect(sent.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
  expect(sent[2]).toMatchObject({ reason: { code: 'STATE' } })
  expect(learner.steps).toBe(0)
  const { metrics } = await learner.optimStep(adam)
  expect(metrics['grad_norm']).toBeGreaterThan(0)
  expect(learner.steps).toBe(1)
  await backend.close()
})
