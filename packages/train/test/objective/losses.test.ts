import { tokenChunk, type Datum, type Learner, type Loss } from '@tiltyard/core'
import { bigramBackend } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { assembleEpisode } from '../../src/data/assemble.ts'
import { groupAdvantages } from '../../src/objective/advantages.ts'
import { forwardBackwardCustom } from '../../src/objective/custom-loss.ts'
import { lossTerms } from '../../src/objective/losses.ts'
import { preferenceLoss } from '../../src/objective/preference.ts'
import { playedReply } from '../support/played.ts'

const p = [-1, -0.5, -2]

function policyDatum(
  q: readonly number[],
  advantages: readonly number[],
  mask?: readonly number[],
): Datum {
  return {
    input: [tokenChunk(q.map((_, index) => index))],
    targets: Int32Array.from(q, (_, index) => index + 1),
    logprobs: Float32Array.from(q),
    advantages: Float32Array.from(advantages),
    ...(mask === undefined ? {} : { mask: Float32Array.from(mask) }),
  }
}

const terms = (loss: Loss, q = [-1.2, -0.5, -1.5], advantages = [1, 1, -1]) =>
  lossTerms(policyDatum(q, advantages), p, loss)

const near = (values: readonly number[]) =>
  values.map((value) => expect.closeTo(value, 6) as number)

/** The one token whose ratio is r, with advantage A. */
const quadrant = (ratio: number, advantage: number, loss: Loss) =>
  lossTerms(policyDatum([0], [advantage]), [Math.log(ratio)], loss)

describe('losses, by their formulas', () => {
  test('statement 52: ratios are exp(p − q)', () => {
    const { gradient } = terms({ name: 'importance_sampling' }, undefined, [1, 1, 1])
    expect([...gradient]).toEqual(near([-1.2214028, -1, -0.6065307]))
  })

  test('statement 53: importance sampling', () => {
    expect(terms({ name: 'importance_sampling' }).loss).toBeCloseTo(-1.6148721, 6)
  })

  test('statement 54: ppo, and its gradient, which is zero where the clip wins', () => {
    const ppo = terms({ name: 'ppo' })
    expect(ppo.loss).toBeCloseTo(-1.4, 6)
    expect([...ppo.gradient]).toEqual(near([0, -1, 0]))
    expect(ppo.clipped).toBe(2)
    expect(terms({ name: 'ppo', clipLow: 0.9, clipHigh: 1.1 }).loss).toBeCloseTo(-1.2, 6)
  })

  test('statement 55: cispo, whose clipped ratio only weighs', () => {
    const cispo = terms({ name: 'cispo' })
    expect(cispo.loss).toBeCloseTo(0.5083414, 6)
    expect([...cispo.gradient]).toEqual(near([-1.2214028, -1, 0.6065307]))
    expect(terms({ name: 'cispo', clipHigh: 1.1 }).loss).toBeCloseTo(0.3869387, 6)
    expect(terms({ name: 'cispo', clipHigh: 1.1 }).clipped).toBe(1)
  })

  test('statement 56: dro pulls towards the recorded log-probability', () => {
    const dro = terms({ name: 'dro', beta: 0.05 })
    expect(dro.loss).toBeCloseTo(-0.49275, 6)
    expect([...dro.gradient]).toEqual(near([-0.99, -1, 0.975]))
  })

  test.each([
    [1.5, 1, -1.2],
    [1.5, -1, 1.5],
    [0.5, 1, -0.5],
    [0.5, -1, 0.8],
  ])('statement 57: ppo at ratio %d and advantage %d is %d', (ratio, advantage, loss) => {
    expect(quadrant(ratio, advantage, { name: 'ppo' }).loss).toBeCloseTo(loss, 6)
  })

  test('statement 58: on-policy, two tokens of advantage 0.5 lose −1', () => {
    expect(
      lossTerms(policyDatum([-1, -2], [0.5, 0.5]), [-1, -2], { name: 'importance_sampling' }).loss,
    ).toBe(-1)
  })

  test('statement 59: tokens are summed, so the longer episode weighs more', () => {
    const [right, wrong] = groupAdvantages([1, 0])
    const episodes = [
      { length: 2, advantage: right! },
      { length: 6, advantage: wrong! },
    ]
    const losses = episodes.map(({ length, advantage }) => {
      const reply = playedReply(
        [1],
        Array.from({ length }, (_, index) => index),
      )
      const [{ datum, logprobs }] = assembleEpisode({ replies: [reply] }, advantage) as [
        ReturnType<typeof assembleEpisode>[number],
      ]
      return lossTerms(datum, logprobs, { name: 'importance_sampling' }).loss
    })
    expect(losses[0]! + losses[1]!).toBe(2)
  })

  test('F34: a fully masked episode adds nothing to numerator or denominator', () => {
    const ten = Array.from({ length: 10 }, () => -1)
    const alone = lossTerms(policyDatum(ten, ten), ten, { name: 'dro', beta: 0.1 })
    const masked = lossTerms(
      policyDatum(
        ten,
        ten,
        ten.map(() => 0),
      ),
      ten.map(() => -3),
      { name: 'dro', beta: 0.1 },
    )
    expect(masked).toEqual({ loss: 0, gradient: new Float32Array(10), clipped: 0 })
    expect(alone.loss).toBe(-10)
  })

  test('a datum that lacks what the loss reads is refused by the name of the array', () => {
    const { advantages: _, ...without } = policyDatum([-1], [1])
    expect(() => lossTerms(without, [-1], { name: 'ppo' })).toThrow('ppo needs advantages')
    expect(() => lossTerms(without, [-1], { name: 'cross_entropy' })).toThrow('needs weights')
  })

  test.each<Loss>([
    { name: 'importance_sampling' },
    { name: 'ppo' },
    { name: 'cispo' },
    { name: 'dro', beta: 0.3 },
  ])('the gradient of $name is the slope of its value, the stopped factor apart', (loss) => {
    const datum = policyDatum([-1.2, -0.5, -1.5, -0.9], [1, 1, -1, 0.4])
    const at = [-1, -0.5, -1.45, -2]
    const { gradient } = lossTerms(datum, at, loss)
    const step = 1e-4
    // cispo's clipped ratio is held fixed: its slope in p is that of the line through the value at p = 0.
    const value = (logprobs: readonly number[]) => lossTerms(datum, logprobs, loss).loss
    const slopes = at.map((_, index) => {
      if (loss.name === 'cispo') {
        const only = policyDatum([datum.logprobs![index]!], [datum.advantages![index]!])
        return lossTerms(only, [at[index]!], loss).loss / at[index]!
      }
      const moved = (by: number) => at.map((each, other) => (other === index ? each + by : each))
      return (value(moved(step)) - value(moved(-step))) / (2 * step)
    })
    expect([...gradient]).toEqual(slopes.map((slope) => expect.closeTo(slope, 3) as number))
  })
})

/** A learner that remembers what it was sent, and whose log-probabilities are given. */
function recordingLearner(logprobs: readonly number[][]) {
  const sent: (readonly Datum[])[] = []
  const answer = async (data: readonly Datum[]) => ({
    logprobs: data.map((_, index) => Float32Array.from(logprobs[index]!)),
    loss: 0,
    metrics: {},
  })
  const learner = {
    forward: answer,
    forwardBackward(data: readonly Datum[]) {
      sent.push(data)
      return answer(data)
    },
  } as unknown as Learner
  return { learner, sent }
}

describe('a custom loss', () => {
  const pair = { input: [tokenChunk([1, 2])], targets: Int32Array.of(2, 3) }

  test('statement 64: the weights sent are −dL/dp; L = Σp² at [−1, −2] sends [2, 4]', async () => {
    const { learner, sent } = recordingLearner([[-1, -2]])
    const result = await forwardBackwardCustom(learner, [pair], ([logprobs]) => ({
      loss: logprobs!.reduce((sum, each) => sum + each * each, 0),
      gradients: [logprobs!.map((each) => 2 * each)],
    }))
    expect(sent).toEqual([[{ ...pair, weights: Float32Array.of(2, 4) }]])
    expect(result.loss).toBe(5)
  })

  test('its gradient is that of the built-in loss of the same formula', async () => {
    const datum = policyDatum([-1, -2, -0.5], [0.5, -0.25, 1])
    const after = async (accumulate: (learner: Learner) => Promise<unknown>) => {
      const backend = bigramBackend({ vocabularySize: 8 })
      const learner = await backend.learner({ model: 'bigram', adaptation: 'full' })
      await accumulate(learner)
      await learner.optimStep({ learningRate: 0.1 })
      const { logprobs } = await learner.forward([datum], { name: 'importance_sampling' })
      return [...logprobs[0]!]
    }
    const own = await after((learner) =>
      forwardBackwardCustom(learner, [datum], ([logprobs]) => {
        const { loss, gradient } = lossTerms(datum, logprobs!, { name: 'importance_sampling' })
        return { loss, gradients: [gradient] }
      }),
    )
    const builtIn = await after((learner) =>
      learner.forwardBackward([datum], { name: 'importance_sampling' }),
    )
    expect(own).toEqual(near(builtIn))
  })

  test('a gradient of another length, or one that is not finite, is refused before anything is sent', async () => {
    const { learner, sent } = recordingLearner([[-1, -2]])
    const withGradient = (gradient: readonly number[]) =>
      forwardBackwardCustom(learner, [pair], () => ({ loss: 0, gradients: [gradient] }))
    await expect(withGradient([1])).rejects.toThrow(
      'gave 1 gradients for datum 0, which has 2 targets',
    )
    await expect(withGradient([1, Number.NaN])).rejects.toThrow('is NaN at target 1 of datum 0')
    expect(sent).toEqual([])
  })

  test('statement 81: DPO of one pair: loss 0.6209571, margin 0.15, accuracy 1', () => {
    const told: unknown[] = []
    const loss = preferenceLoss([{ chosen: -11, rejected: -11.5 }], {
      beta: 0.1,
      onMetrics: (metrics) => told.push(metrics),
    })
    const data = [pair, pair]
    const result = loss([Float32Array.of(-4, -6), Float32Array.of(-5, -7)], data)
    expect(result.loss).toBeCloseTo(0.6209571, 6)
    expect(told).toEqual([{ accuracy: 1, margin: expect.closeTo(0.15, 6) as number }])
    // dL/dp is −beta · σ(−margin) on the preferred reply's tokens, and the opposite on the other's.
    const slope = -0.1 / (1 + Math.exp(0.15))
    expect(result.gradients.map((each) => Array.from(each))).toEqual([
      near([slope, slope]),
      near([-slope, -slope]),
    ])
  })

  test('preferences need a reference for each pair', () => {
    const loss = preferenceLoss([{ chosen: 0, rejected: 0 }])
    expect(() => loss([], [])).toThrow('1 references need 2 data, got 0')
  })
})
