import type { Loss } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { graphBuilder } from '../../src/graph/builder.ts'
import { adamUpdate, zeroMoments } from '../../src/learn/adam.ts'
import { lossKinds, lossSettings, lossSlope, tokenLoss } from '../../src/learn/losses.ts'
import { floats, wholes } from '../../src/runtime/executor.ts'
import { testExecutor } from '../support/engine.ts'

/** Values and slopes of the reference list (statements 52 to 60), the slopes by the graph that training runs. */

const executor = await testExecutor()
const p = [-1, -0.5, -2]
const q = [-1.2, -0.5, -1.5]
const A = [1, 1, -1]

const program = await (async () => {
  const graph = graphBuilder()
  const perToken = (name: string) => graph.input(name, 'float', ['N', 1])
  const setting = (name: string) => graph.input(name, 'float', [1])
  const slope = lossSlope(
    graph,
    graph.input('loss', 'int64', [1]),
    perToken('p'),
    {
      weight: perToken('weight'),
      advantage: perToken('advantage'),
      recorded: perToken('recorded'),
    },
    { low: setting('low'), high: setting('high'), beta: setting('beta') },
  )
  graph.output('slope', slope)
  return executor.load(graph.build())
})()

interface Tokens {
  readonly p: readonly number[]
  readonly q?: readonly number[]
  readonly A?: readonly number[]
  readonly w?: readonly number[]
}

function valueOf(loss: Loss, { p: now, q: then = [], A: advantages = [], w = [] }: Tokens): number {
  return now.reduce((sum, value, at) => {
    const inputs = { weight: w[at] ?? 0, advantage: advantages[at] ?? 0, recorded: then[at] ?? 0 }
    return sum + tokenLoss(loss.name, value, inputs, lossSettings(loss))
  }, 0)
}

/** dL/dp */
async function slopesOf(loss: Loss, { p: now, q: then, A: advantages, w }: Tokens) {
  const { low, high, beta } = lossSettings(loss)
  const column = (values: readonly number[] | undefined) =>
    floats(Float32Array.from(values ?? now.map(() => 0)), [now.length, 1])
  const { slope } = await program.run({
    loss: wholes([lossKinds.indexOf(loss.name)]),
    p: column(now),
    weight: column(w),
    advantage: column(advantages),
    recorded: column(then),
    low: single(low),
    high: single(high),
    beta: single(beta),
  })
  return Array.from(slope!, (value) => -value)
}

function single(value: number) {
  return floats(Float32Array.of(value), [1])
}

function onPolicy(advantages: readonly number[]): number {
  const now = advantages.map(() => -1.3)
  return valueOf({ name: 'importance_sampling' }, { p: now, q: now, A: advantages })
}

describe('values and slopes', () => {
  test.each<{ loss: Loss; value: number; slopes?: readonly number[] }>([
    {
      loss: { name: 'importance_sampling' },
      value: -1.6148721,
      slopes: [-1.2214028, -1, 0.6065307],
    },
    { loss: { name: 'ppo' }, value: -1.4, slopes: [0, -1, 0] },
    { loss: { name: 'ppo', clipLow: 0.9, clipHigh: 1.1 }, value: -1.2 },
    { loss: { name: 'cispo' }, value: 0.5083414, slopes: [-1.2214028, -1, 0.6065307] },
    { loss: { name: 'cispo', clipHigh: 1.1 }, value: 0.3869387 },
    { loss: { name: 'dro', beta: 0.05 }, value: -0.49275, slopes: [-0.99, -1, 0.975] },
  ])('$loss is $value', async ({ loss, value, slopes }) => {
    expect(valueOf(loss, { p, q, A })).toBeCloseTo(value, 6)
    const found = await slopesOf(loss, { p, q, A })
    slopes?.forEach((slope, at) => expect(found[at]).toBeCloseTo(slope, 6))
  })

  test.each([
    [1.5, 1, -1.2, 0],
    [1.5, -1, 1.5, 1.5],
    [0.5, 1, -0.5, -0.5],
    [0.5, -1, 0.8, 0],
  ])('ppo with ratio %d and advantage %d is %d', async (ratio, advantage, value, slope) => {
    const tokens = { p: [Math.log(ratio)], q: [0], A: [advantage] }
    expect(valueOf({ name: 'ppo' }, tokens)).toBeCloseTo(value, 6)
    expect((await slopesOf({ name: 'ppo' }, tokens))[0]).toBeCloseTo(slope, 6)
  })

  test('on policy, importance sampling is minus the sum of advantages over tokens', () => {
    expect(onPolicy([0.5, 0.5])).toBeCloseTo(-1, 9)
    expect(onPolicy([0.5, 0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5])).toBeCloseTo(2, 9)
  })

  test('weights of minus dL/dp train any loss of log-probabilities', async () => {
    const slopes = await slopesOf({ name: 'cross_entropy' }, { p: [-1, -2], w: [2, 4] })
    expect(slopes).toEqual([-2, -4])
  })
})

describe('AdamW', () => {
  test('the first two updates are those of the reference', () => {
    const weights = new Float32Array(1)
    const moments = zeroMoments(1)
    const settings = { learningRate: 1e-5, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0 }
    adamUpdate(weights, Float32Array.of(0.1), moments, settings, 1, 1)
    const first = weights[0]!
    expect(first / -9.999999e-6).toBeCloseTo(1, 6)
    adamUpdate(weights, Float32Array.of(-0.05), moments, settings, 2, 1)
    expect((weights[0]! - first) / -2.683694e-6).toBeCloseTo(1, 5)
  })

  test('decay pulls weights to zero apart from the gradient', () => {
    const weights = Float32Array.of(2)
    const settings = { learningRate: 0.1, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.5 }
    adamUpdate(weights, Float32Array.of(0), zeroMoments(1), settings, 1, 1)
    expect(weights[0]).toBeCloseTo(1.9, 6)
  })
})
