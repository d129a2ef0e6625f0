import { tokenChunk, type Datum, type Learner, type Lora } from '@tiltyard/core'
import { afterAll, expect, test } from 'vitest'

import { tinyBackend } from './support/tiny.ts'

const backend = tinyBackend()
afterAll(() => backend.close())

const loss = { name: 'cross_entropy' } as const
const datum: Datum = {
  input: [tokenChunk([1, 2, 3])],
  targets: Int32Array.of(2, 3, 4),
  weights: Float32Array.of(1, 1, 1),
}

async function afterOneStep(learner: Learner): Promise<Float32Array> {
  await learner.forwardBackward([datum], loss)
  await learner.optimStep({ learningRate: 0.05 })
  const { logprobs } = await learner.forward([datum], loss)
  return logprobs[0]!
}

const trained = async (adaptation: Lora) =>
  afterOneStep(await backend.learner({ model: 'tiny', adaptation }))

test('adapters begin as their seed says', async () => {
  const first = await trained({ rank: 4, seed: 1 })
  expect(await trained({ rank: 4, seed: 1 })).toEqual(first)
  expect(await trained({ rank: 4, seed: 2 })).not.toEqual(first)
})

test('adapters without an alpha have that of their rank: they count in full', async () => {
  const plain = await trained({ rank: 4 })
  expect(await trained({ rank: 4, alpha: 4 })).toEqual(plain)
  expect(await trained({ rank: 4, alpha: 8 })).not.toEqual(plain)
})

test('a sampler names the checkpoint that it is of, if others can sample from it', async () => {
  const learner = await backend.learner({ model: 'tiny', adaptation: 'full' })
  const { checkpoint } = await learner.publish({ name: 'published' })
  expect(checkpoint).toEqual({ kind: 'sampling', path: 'published' })
  const sampling = await backend.sampler({ checkpoint: checkpoint! })
  expect(sampling.checkpoint).toEqual(checkpoint)
  const training = await backend.sampler({ checkpoint: await learner.save('saved') })
  expect(training.checkpoint).toBeUndefined()
})
