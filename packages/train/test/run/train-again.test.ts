import { tokenChunk, type Datum, type EpisodeRecord, type Loss } from '@tiltyard/core'
import { expect, test } from 'vitest'

import type { OptimizerOptions, TrainingConfig } from '../../src/index.ts'
import { letterBackend } from '../support/letters.ts'
import { newPlace, trainThere, weightsOf } from '../support/runs.ts'

/** Data of an episode, out of its record alone. */
function dataOf({ episode, training }: EpisodeRecord): readonly Datum[] {
  return (training?.data ?? []).map(({ sequence, advantages }) => {
    const { ids, logprobs, mask } = episode!.sequences[sequence]!
    const { advantage = 0 } = training!
    return {
      input: [tokenChunk(ids.slice(0, -1))],
      targets: ids.slice(1),
      logprobs: logprobs.slice(1),
      // A target belongs to the position after its own.
      advantages: (advantages ?? Float32Array.from(mask, (mark) => mark * advantage)).slice(1),
      mask: Float32Array.from(mask.slice(1)),
    }
  })
}

test.each<[string, Partial<TrainingConfig>]>([
  ['one advantage an episode', {}],
  ['an advantage a token', { kl: { coefficient: 0.1, reference: { model: 'bigram' } } }],
  ['a clipped loss', { loss: { name: 'ppo', clipLow: 0.9, clipHigh: 1.1 } }],
])('the record alone trains the same weights again: %s', async (_what, config) => {
  const place = newPlace()
  const { result } = await trainThere(place, config)
  const { record, steps } = await place.index.run('letters')

  const again = letterBackend()
  const learner = await again.learner({ model: 'bigram', adaptation: 'full' })
  const loss = record.config['loss'] as Loss
  const { schedule: _, ...adam } = record.config['optimizer'] as unknown as OptimizerOptions
  let trained = 0
  for (const { step } of steps) {
    const data: Datum[] = []
    for await (const episode of place.index.records!('letters', { split: 'train', step }))
      data.push(...dataOf(episode))
    trained += data.length
    if (data.length > 0) await learner.forwardBackward(data, loss)
    await learner.optimStep(adam)
  }
  expect(trained).toBeGreaterThan(50)
  const { checkpoint } = await learner.publish({ name: 'again' })
  const numbers = (text: string) => text.split(' ').map(Number)
  const found = numbers(await weightsOf(again, checkpoint!))
  const expected = numbers(await weightsOf(place.backend, result.checkpoint!.sampling!))
  const gap = Math.max(...found.map((logprob, at) => Math.abs(logprob - expected[at]!)))
  expect(gap).toBeLessThan(1e-5)
})
