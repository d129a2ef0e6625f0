import { promptIds, type Sampler } from '@tiltyard/core'
import { scriptedSampler } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import type { KlOptions } from '../../src/config/options.ts'
import { assembleEpisode } from '../../src/data/assemble.ts'
import { updateMetrics } from '../../src/metrics/updates.ts'
import { klPenalties, logprobGap, type ScoredDatum } from '../../src/objective/kl.ts'
import { addKlPenalties } from '../../src/run/objective.ts'
import { playedReply } from '../support/played.ts'

const near = (values: readonly number[]) =>
  values.map((value) => expect.closeTo(value, 6) as number)

/** The two turns of the common data, with advantage 0.5; actions stand at targets 2, 3, 5 and 6. */
const commonData = () =>
  assembleEpisode(
    {
      replies: [
        playedReply([1, 2, 3], [10, 11], [-0.5, -0.25]),
        playedReply([1, 2, 3, 10, 11, 20], [30, 31], [-1, -2]),
      ],
    },
    0.5,
  )

/** Values at the action positions, and 9 elsewhere, which nothing may read. */
const atActions = ([a, b, c, d]: readonly number[]) => [9, 9, a!, b!, 9, c!, d!]

/** What a step makes of the common data with a reference, and what it asks of the reference. */
const penalized = async (options: Omit<KlOptions, 'reference'>) => {
  const asked: (readonly number[])[] = []
  const reference: Sampler = {
    ...scriptedSampler([]),
    async logprobs(prompt) {
      asked.push([...promptIds(prompt)])
      return Float32Array.of(0, ...atActions([-0.6, -0.45, -0.8, -1.8]))
    },
  }
  const data = commonData()
  const all = { ...options, reference: { model: 'reference' } }
  const mean = await addKlPenalties(data, reference, all, new AbortController().signal)
  return { advantages: data.map(({ advantages }) => [...advantages]), mean, asked }
}

describe('the pull towards a reference', () => {
  test('statement 66: without discount each token answers for itself, around the mean', async () => {
    const { advantages, mean, asked } = await penalized({ coefficient: 0.1 })
    expect(mean).toBeCloseTo(-0.025, 6)
    expect(advantages).toEqual([near([0, 0, 0.4875, 0.4775, 0, 0.5175, 0.5175])])
    expect(asked).toEqual([[1, 2, 3, 10, 11, 20, 30, 31]])
  })

  test('statement 67: a discount never reaches tokens that are not trained', async () => {
    const { advantages } = await penalized({ coefficient: 0.1, discount: 0.5 })
    expect(advantages).toEqual([near([0, 0, 0.4795313, 0.4840625, 0, 0.52625, 0.5175])])
  })

  test('statement 67: the discount may count sampled tokens only', async () => {
    const options = { coefficient: 0.1, discount: 0.5, discountOver: 'sampled' } as const
    expect((await penalized(options)).advantages).toEqual([
      near([0, 0, 0.4828125, 0.490625, 0, 0.52625, 0.5175]),
    ])
  })

  test.each([
    [[1, 2, 3], 0.5, [2.75, 3.5, 3]],
    [[1, 2, 3], 1, [6, 5, 3]],
    [[0, 0, 1, 0], 0.5, [0.25, 0.5, 1, 0]],
  ])('statement 68: discounted sums of %j at %d are %j', (values, discount, sums) => {
    const datum: ScoredDatum = {
      mask: values.map(() => 1),
      logprobs: values.map((value) => -value),
      reference: values.map(() => 0),
    }
    const { penalties } = klPenalties([datum], { coefficient: 1, discount, centered: false })
    expect([...penalties[0]!]).toEqual(sums)
  })

  test('statement 69: the mean is over all data of the step', () => {
    const data = [
      { mask: [1, 1], logprobs: [-0.2, -0.4], reference: [-0.5, -0.5] },
      { mask: [1], logprobs: [-1], reference: [-0.4] },
    ]
    const { penalties, mean } = klPenalties(data, { coefficient: 0.5 })
    expect(mean).toBeCloseTo(-0.0666667, 6)
    expect(Array.from(penalties[0]!, (each) => 1 + each)).toEqual(near([0.8166667, 0.9166667]))
    expect(Array.from(penalties[1]!, (each) => -1 + each)).toEqual(near([-0.7333333]))
  })

  test('statement 80: uncentred it is on-policy distillation from a teacher', () => {
    const datum = { mask: [1, 1], logprobs: [-1, -2], reference: [-0.5, -3] }
    const { penalties, mean } = klPenalties([datum], { coefficient: 1, centered: false })
    expect([...penalties[0]!]).toEqual([0.5, -1])
    expect(mean).toBe(0.25)
  })

  test('data without a trained token have no penalty and a mean of 0, not NaN', () => {
    const datum = { mask: [0, 0], logprobs: [0, 0], reference: [Number.NaN, Number.NaN] }
    expect(klPenalties([datum], { coefficient: 1 })).toEqual({
      penalties: [new Float32Array(2)],
      mean: 0,
    })
  })
})

describe('the gap between two sets of log-probabilities', () => {
  test('statement 65: sampler against learner, and what the sampled tokens surprise', () => {
    const logprobs = [Float32Array.from(atActions([-0.7, -0.25, -0.5, -2.5]))]
    const part = { data: commonData(), result: { logprobs, loss: 0, metrics: {} } }
    const metrics = updateMetrics([part], { name: 'importance_sampling' })
    expect(metrics['optim/kl_sample_train_v1']).toBeCloseTo(0.05, 6)
    expect(metrics['optim/kl_sample_train_v2']).toBeCloseTo(0.0675, 6)
    expect(metrics['optim/entropy']).toBeCloseTo(0.9375, 6)
    expect(metrics['optim/logprob_diff_max']).toBeCloseTo(0.5, 6)
    expect(metrics['optim/logprob_diff_mean']).toBeCloseTo(0.3, 6)
    expect(metrics['data/trained_tokens']).toBe(4)
  })

  test('statement 70: before against after an update', () => {
    const gap = logprobGap(commonData(), [atActions([-0.4, -0.35, -1, -1.5])])
    expect(gap.v1).toBeCloseTo(-0.125, 6)
    expect(gap.v2).toBeCloseTo(0.03375, 6)
  })

  test('of nothing it is nothing, and of NaN it is NaN', () => {
    expect(logprobGap([], [])).toMatchObject({ tokens: 0, v1: 0, maxAbs: 0 })
    expect(logprobGap([{ mask: [1], logprobs: [-1] }], [[Number.NaN]]).maxAbs).toBeNaN()
  })
})
