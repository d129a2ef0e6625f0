import type { Loss } from '@tiltyard/core'

import type { PackedData } from '../../src/learn/packed-data.ts'
import { createTrainer, type Trainer, type TrainerState } from '../../src/learn/trainer.ts'
import { initialAdapters, type LoraShape } from '../../src/model/adapters.ts'
import { initialTensors } from '../../src/model/parameters.ts'
import { modelShapeSchema, type ModelShape } from '../../src/model/shape.ts'
import { encodeModel } from '../../src/onnx/model.ts'
import { uniform } from '../../src/random.ts'
import type { Executor, Program } from '../../src/runtime/executor.ts'
import { loadExecutor } from '../../src/runtime/onnxruntime.ts'
import { tinyShape } from './tiny.ts'

export const shape: ModelShape = modelShapeSchema.parse(tinyShape)

/** Loads equal graphs once, since a test makes many trainers of one shape. */
export async function testExecutor(threads = 2): Promise<Executor> {
  const choice = process.env['TILTYARD_LOCAL_EXECUTOR'] === 'web' ? 'web' : 'auto'
  const executor = await loadExecutor({ choice, threads })
  const loaded = new Map<string, Promise<Program>>()
  return {
    ...executor,
    load(graph, options) {
      const key = `${options?.threads} ${Buffer.from(encodeModel(graph)).toString('base64')}`
      const program = loaded.get(key) ?? executor.load(graph, options)
      loaded.set(key, program)
      return program
    },
  }
}

export function freshState(lora?: LoraShape, of = shape): TrainerState {
  const weights = initialTensors(of, { seed: 3, deviation: 0.2, queryKeyNorm: 1.2 })
  const adapters = lora === undefined ? undefined : initialAdapters(of, lora, 5)
  // B begins at zero, where A has no gradient; a test of both wants neither there.
  adapters?.forEach((tensor, name) => {
    if (name.includes('lora_B'))
      tensor.forEach((_, at) => (tensor[at] = 0.1 * (uniform(9, 0, at) - 0.5)))
  })
  return { step: 0, weights, moments: new Map(), ...(adapters === undefined ? {} : { adapters }) }
}

export interface TrainerSetup {
  readonly executor: Executor
  readonly lora?: LoraShape
  readonly microBatchTokens?: number
  readonly state?: TrainerState
  readonly of?: ModelShape
}

export function testTrainer(setup: TrainerSetup): Trainer {
  const { executor, lora, microBatchTokens = 512, of = shape } = setup
  const state = setup.state ?? freshState(lora, of)
  return createTrainer({ executor, shape: of, lora, microBatchTokens, state })
}

/** Data of several lengths for a loss, seeded. With `common`, all begin with so many untrained tokens. */
export function someData(loss: Loss, common = 0, vocabulary = shape.vocabularySize): PackedData {
  const lengths = [11, 7, 14, 9].map((length) => length + common)
  const total = lengths.reduce((sum, length) => sum + length, 0)
  const [tokens, targets] = [new Int32Array(total), new Int32Array(total)]
  const [first, second, third] = [0, 1, 2].map(() => new Float32Array(total)) as [
    Float32Array,
    Float32Array,
    Float32Array,
  ]
  let start = 0
  lengths.forEach((length, row) => {
    const idAt = (at: number) => Math.floor(uniform(7, at <= common ? 0 : row + 1, at) * vocabulary)
    for (let at = 0; at < length; at += 1) {
      tokens[start + at] = idAt(at)
      targets[start + at] = idAt(at + 1)
      if (at < common + 2) continue
      first[start + at] = uniform(8, row, at) * 2 - 0.7
      second[start + at] = -Math.log(vocabulary) + uniform(9, row, at) - 0.5
      third[start + at] = uniform(10, row, at) * 2 - 1
    }
    start += length
  })
  const shared = { lengths: Int32Array.from(lengths), tokens, targets }
  if (loss.name === 'cross_entropy') return { ...shared, weights: first }
  // A mask keeps dro from pulling at what isn't trained.
  const mask = third.map((value) => (value === 0 ? 0 : 1))
  return { ...shared, recorded: second, advantages: third, mask }
}

/** The gradient itself: with β = 0 and a huge ε an AdamW step is −lr/ε times it. */
export async function gradientOf(
  trainer: Trainer,
  data: PackedData,
  loss: Loss,
): Promise<ReadonlyMap<string, Float64Array>> {
  const copied = () => {
    const { weights, adapters } = trainer.state()
    return new Map(
      [...weights, ...(adapters ?? [])].map(([name, tensor]) => [name, tensor.slice()]),
    )
  }
  const before = copied()
  await trainer.forwardBackward(data, loss)
  const size = 1e6
  const settings = { beta1: 0, beta2: 0, weightDecay: 0, clipNorm: 0, epsilon: size }
  trainer.step({ ...settings, learningRate: size })
  const after = copied()
  return new Map(
    [...before].map(([name, tensor]) => [
      name,
      Float64Array.from(tensor, (value, at) => value - after.get(name)![at]!),
    ]),
  )
}

/** |a − b| / |b| as vectors. */
export function relativeError(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [difference, length] = [0, 0]
  for (let at = 0; at < b.length; at += 1) {
    difference += (a[at]! - b[at]!) ** 2
    length += b[at]! ** 2
  }
  return Math.sqrt(difference / Math.max(length, Number.MIN_VALUE))
}
