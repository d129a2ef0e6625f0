import { tokenPrompt, type Backend, type Learner, type Sampler } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { backendCases, bigramBackend } from '../src/index.ts'

type Change<T> = (made: T) => Partial<T>

/** A correct backend with one promise broken. */
function broken(change: { sampler?: Change<Sampler>; learner?: Change<Learner> }): Backend {
  const backend = bigramBackend()
  const sampler = (it: Sampler): Sampler => ({ ...it, ...change.sampler?.(it) })
  return {
    ...backend,
    sampler: async (ref) => sampler(await backend.sampler(ref)),
    learner: async (options) => {
      const it = await backend.learner(options)
      const changed = change.learner?.(it) ?? {}
      return Object.defineProperties({} as Learner, {
        ...Object.getOwnPropertyDescriptors(it),
        ...Object.getOwnPropertyDescriptors(changed),
      })
    },
  }
}

const faults: readonly (readonly [string, () => Backend, string])[] = [
  [
    'samples without their stop token',
    () =>
      broken({
        sampler: (it) => ({
          sample: async (request, options) =>
            (await it.sample(request, options)).map((sample) =>
              sample.stop === 'stop'
                ? {
                    ...sample,
                    ids: sample.ids.slice(0, -1),
                    logprobs: sample.logprobs.slice(0, -1),
                  }
                : sample,
            ),
        }),
      }),
    'sampler: a stop token ends the sample and is part of it',
  ],
  [
    'log-probabilities of another prompt',
    () =>
      broken({
        sampler: (it) => ({
          logprobs: (prompt, options) =>
            it.logprobs(tokenPrompt(new Int32Array(prompt.length)), options),
        }),
      }),
    'sampler: sampled ids score the same as part of a prompt',
  ],
  [
    'a sampler that ignores its signal',
    () => broken({ sampler: (it) => ({ sample: (request) => it.sample(request) }) }),
    'sampler: an aborted call rejects with the signal’s reason and harms no other',
  ],
  [
    'seeds that nobody reads',
    () =>
      broken({
        sampler: (it) => ({
          sample: (request, options) =>
            it.sample(
              {
                ...request,
                seeds: Array.from({ length: request.n ?? 1 }, () => Math.random() * 2 ** 31),
              },
              options,
            ),
        }),
      }),
    'sampler: a seeded sample depends on its request alone, also among strangers',
  ],
  [
    'a forward that trains',
    () =>
      broken({ learner: (it) => ({ forward: (data, loss) => it.forwardBackward(data, loss) }) }),
    'learner: forward changes nothing',
  ],
  [
    'a step that forgets its clipping',
    () =>
      broken({
        learner: (it) => ({ optimStep: (adam) => it.optimStep({ ...adam, clipNorm: 0 }) }),
      }),
    'learner: clipNorm bounds the whole gradient',
  ],
  [
    'a mean in place of a sum',
    () =>
      broken({
        learner: (it) => ({
          async forward(data, loss) {
            const result = await it.forward(data, loss)
            return { ...result, loss: result.loss / data.length }
          },
        }),
      }),
    'learner: dro: the loss is its formula, summed',
  ],
  [
    'bounds of ppo that are not passed on',
    () =>
      broken({
        learner: (it) => ({
          forwardBackward: (data, loss) =>
            it.forwardBackward(data, loss.name === 'ppo' ? { name: 'ppo' } : loss),
        }),
      }),
    'learner: ppo, with bounds: its gradient is the derivative of its formula',
  ],
]

test.each(faults)('%s: caught', async (_, create, name) => {
  const cases = backendCases({ create: async () => create(), model: 'bigram' })
  const found = cases.find((it) => it.name === name)
  expect(found, 'the case exists').toBeDefined()
  await expect(found!.run()).rejects.toBeInstanceOf(Error)
})

test('an undeclared lack fails, a declared one is skipped and must be true', async () => {
  const options = { create: async () => bigramBackend(), model: 'bigram' }
  const lacks = { mask: 'the wire has none' }
  const declared = backendCases({ ...options, lacks })
  const masked = declared.filter((it) => it.skip === lacks.mask)
  expect(masked.map((it) => it.name)).toEqual(['learner: a masked target has no part in the loss'])
  await expect(declared[0]!.run(), 'this backend has a mask').rejects.toThrow('mask')
})
