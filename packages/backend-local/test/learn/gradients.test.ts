import type { Loss } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { microBatches, sharedPrefix } from '../../src/learn/batches.ts'
import { spansOf, type PackedData } from '../../src/learn/packed-data.ts'
import type { TrainerState } from '../../src/learn/trainer.ts'
import { type LoraShape, trainableOf } from '../../src/model/adapters.ts'
import { type ModelShape, modelShapeSchema } from '../../src/model/shape.ts'
import { uniform } from '../../src/random.ts'
import {
  freshState,
  gradientOf,
  relativeError,
  shape,
  someData,
  testExecutor,
  testTrainer,
} from '../support/engine.ts'

const losses: readonly Loss[] = [
  { name: 'cross_entropy' },
  { name: 'importance_sampling' },
  { name: 'ppo' },
  { name: 'cispo', clipLow: 0.8, clipHigh: 1.2 },
  { name: 'dro', beta: 0.05 },
]
const [crossEntropy, policyLoss] = losses as [Loss, Loss]
const executor = await testExecutor()

/** Every tensor moved along one random direction of its own, so that one difference checks all of its entries. */
function moved(state: TrainerState, name: string, by: number): TrainerState {
  const shift = (tensors: ReadonlyMap<string, Float32Array>) =>
    new Map(
      [...tensors].map(([key, tensor]) => [
        key,
        key === name ? tensor.map((value, at) => value + by * direction(at)) : tensor.slice(),
      ]),
    )
  const { adapters } = state
  return {
    ...state,
    weights: shift(state.weights),
    ...(adapters === undefined ? {} : { adapters: shift(adapters) }),
  }
}

function direction(at: number): number {
  return uniform(77, 0, at) < 0.5 ? -1 : 1
}

/** cispo holds its ratio still; the derivative is that of the loss with the ratio of the starting point. */
async function frozen(data: PackedData, loss: Loss): Promise<[PackedData, Loss]> {
  if (loss.name !== 'cispo') return [data, loss]
  const { logprobs } = await testTrainer({ executor }).forward(data, loss)
  const weights = logprobs.map((p, at) => {
    const ratio = Math.exp(p - data.recorded![at]!)
    return Math.min(Math.max(ratio, loss.clipLow!), loss.clipHigh!) * data.advantages![at]!
  })
  const { lengths, tokens, targets } = data
  return [{ lengths, tokens, targets, weights }, crossEntropy]
}

/** Tensors whose gradient is not the slope that differences measure, with both. */
async function wrongGradients(
  state: TrainerState,
  data: PackedData,
  loss: Loss,
  { lora, of = shape }: { readonly lora?: LoraShape; readonly of?: ModelShape } = {},
): Promise<readonly string[]> {
  const wrong: string[] = []
  const setup = { executor, of, ...(lora === undefined ? {} : { lora }) }
  const gradients = await gradientOf(testTrainer({ ...setup, state }), data, loss)
  const [measured, measuredLoss] = await frozen(data, loss)
  const lossAt = async (name: string, by: number) =>
    (await testTrainer({ ...setup, state: moved(state, name, by) }).forward(measured, measuredLoss))
      .loss
  for (const { name } of trainableOf(of, lora)) {
    const step = 2e-3 / Math.sqrt(Math.max(1, gradients.get(name)!.length / 32))
    const slope = ((await lossAt(name, step)) - (await lossAt(name, -step))) / (2 * step)
    const gradient = gradients.get(name)!
    const expected = gradient.reduce((sum, value, at) => sum + value * direction(at), 0)
    const size = Math.sqrt(gradient.reduce((sum, value) => sum + value * value, 0))
    if (!(size > 0 && Math.abs(slope - expected) / size < 0.02))
      wrong.push(`${name}: ${slope} by differences, ${expected} by gradient`)
  }
  return wrong
}

describe('against finite differences', () => {
  test.each(losses)('$name: every tensor has the gradient of the loss', async (loss) => {
    expect(await wrongGradients(freshState(), someData(loss), loss)).toEqual([])
  })

  test('every adapter of LoRA has the gradient of the loss', async () => {
    const lora = { rank: 2, alpha: 4 }
    const data = someData(policyLoss)
    expect(await wrongGradients(freshState(lora), data, policyLoss, { lora })).toEqual([])
  })

  test('a head of its own has the gradient of the loss', async () => {
    const of = modelShapeSchema.parse({ ...shape, tiedEmbeddings: false })
    const data = someData(crossEntropy)
    expect(await wrongGradients(freshState(undefined, of), data, crossEntropy, { of })).toEqual([])
  })
})

/** The same data one by one: nothing is shared, nothing is padded. */
async function oneByOne(data: PackedData, loss: Loss) {
  const trainer = testTrainer({ executor })
  const spans = spansOf(data)
  for (const { start, length } of spans.slice(0, -1))
    await trainer.forwardBackward(part(data, start, length), loss)
  const last = spans.at(-1)!
  return gradientOf(trainer, part(data, last.start, last.length), loss)
}

type Gradients = ReadonlyMap<string, Float64Array>

/** The largest relative error of any tensor. */
function farthest(found: Gradients, wanted: Gradients): number {
  return Math.max(...[...wanted].map(([name, tensor]) => relativeError(found.get(name)!, tensor)))
}

function part(data: PackedData, start: number, length: number): PackedData {
  const cut = Object.entries(data).map(([name, values]) => [
    name,
    (values as Float32Array).subarray(start, start + length),
  ])
  return { ...Object.fromEntries(cut), lengths: Int32Array.of(length) } as PackedData
}

describe('batches', () => {
  test.each(losses)(
    '$name: data with a shared prefix have the gradients and log-probabilities that they have alone',
    async (loss) => {
      const data = someData(loss, 40)
      expect(sharedPrefix(data, spansOf(data), loss.name)).toBeGreaterThanOrEqual(40)
      const together = await gradientOf(testTrainer({ executor }), data, loss)
      const apart = await oneByOne(data, loss)
      expect(farthest(together, apart)).toBeLessThan(1e-5)

      const whole = await testTrainer({ executor }).forward(data, loss)
      for (const { start, length } of spansOf(data)) {
        const { logprobs } = await testTrainer({ executor }).forward(
          part(data, start, length),
          loss,
        )
        logprobs.forEach((p, at) => expect(whole.logprobs[start + at]).toBeCloseTo(p, 5))
      }
    },
  )

  test('micro-batches of any size sum to the gradient of the whole', async () => {
    const data = someData(policyLoss)
    const whole = await gradientOf(
      testTrainer({ executor, microBatchTokens: 4_096 }),
      data,
      policyLoss,
    )
    for (const microBatchTokens of [1, 20]) {
      const summed = await gradientOf(testTrainer({ executor, microBatchTokens }), data, policyLoss)
      expect(farthest(summed, whole)).toBeLessThan(1e-5)
    }
  })

  test('no prefix reaches into what is trained, or takes a datum whole', () => {
    const loss = { name: 'dro', beta: 1 } as const
    const { mask: _, ...unmasked } = someData(loss, 40)
    expect(sharedPrefix(unmasked, spansOf(unmasked), 'dro')).toBe(0)
    const same = {
      lengths: Int32Array.of(50, 50),
      tokens: new Int32Array(100),
      targets: new Int32Array(100),
      weights: new Float32Array(100),
    }
    expect(sharedPrefix(same, spansOf(same), 'cross_entropy')).toBe(49)
    const alone = part(same, 0, 50)
    expect(sharedPrefix(alone, spansOf(alone), 'cross_entropy')).toBe(0)
  })

  test('micro-batches hold every datum once, longest first, within the budget', () => {
    expect(microBatches([3, 9, 4, 4, 20], 10)).toEqual([[4], [1], [2, 3], [0]])
  })
})

describe('faults', () => {
  test('a gradient that isn’t finite is refused by name and leaves the learner as it was', async () => {
    const data = someData(policyLoss)
    const wrong = { ...data, recorded: data.recorded!.map(() => -1e4) }
    const trainer = testTrainer({ executor })
    await expect(trainer.forwardBackward(wrong, policyLoss)).rejects.toThrow(
      /the loss is -?(?:Infinity|NaN)/,
    )
    const clean = await gradientOf(testTrainer({ executor }), data, policyLoss)
    const after = await gradientOf(trainer, data, policyLoss)
    expect(trainer.state().step).toBe(1)
    for (const [name, gradient] of clean) expect(after.get(name)).toEqual(gradient)
  })
})

describe('the same again', () => {
  const settings = { learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.01 }
  const run = async (threads: number) => {
    const trainer = testTrainer({ executor: await testExecutor(threads) })
    for (const common of [0, 40, 0]) {
      await trainer.forwardBackward(someData(policyLoss, common), policyLoss)
      trainer.step({ ...settings, clipNorm: 1 })
    }
    return trainer.weights()
  }

  test('two runs end in the same bytes', async () => {
    expect(await run(2)).toEqual(await run(2))
  })
})
