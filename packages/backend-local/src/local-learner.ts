import {
  adamDefaults,
  checkDatum,
  checkOptions,
  DataError,
  missingData,
  StateError,
  UnsupportedError,
  type Datum,
  type Learner,
  type Loss,
  type LossResult,
} from '@tiltyard/core'
import { z } from 'zod'

import { packData, spansOf, type PackedData } from './learn/packed-data.ts'
import { checkIds, ignoreClosed } from './local-sampler.ts'
import type { ModelShape } from './model/shape.ts'
import type { Host } from './worker/host.ts'
import type { Requests } from './worker/protocol.ts'

export interface LocalLearnerOptions {
  readonly host: Host
  /** The worker's number for it. */
  readonly id: number
  readonly model: string
  readonly shape: ModelShape
  readonly steps: number
  /** Makes the sampler of what the worker published. */
  readonly publish: (
    publish: (sampler: number) => Promise<Requests['publish']['out']>,
    step?: number,
  ) => ReturnType<Learner['publish']>
}

const fraction = z.number().min(0).max(1)
const adamSchema = z.strictObject({
  learningRate: z.number().nonnegative(),
  beta1: fraction.default(adamDefaults.beta1),
  beta2: fraction.default(adamDefaults.beta2),
  epsilon: z.number().positive().default(adamDefaults.epsilon),
  weightDecay: z.number().nonnegative().default(adamDefaults.weightDecay),
  clipNorm: z.number().nonnegative().default(adamDefaults.clipNorm),
})

export function localLearner({
  host,
  id,
  model,
  shape,
  steps: from,
  publish,
}: LocalLearnerOptions): Learner {
  let steps = from
  let closed = false
  // Of forward-backwards: those refused here and those that failed in the worker; of both, those whose callers were told.
  let refused = 0
  let toldRefused = 0
  let toldFailed = 0
  const checkOpen = () => {
    if (closed) throw new StateError('the learner is closed')
  }
  const checkedData = (data: readonly Datum[], loss: Loss, backward: boolean): PackedData => {
    try {
      checkData(data, loss, shape)
      return packData(data, loss)
    } catch (error) {
      if (backward) {
        refused += 1
        // After this turn of the event loop its caller has the rejection.
        void Promise.resolve().then(() => (toldRefused += 1))
      }
      throw error
    }
  }
  const request = async (...args: Parameters<typeof host.request<'forward'>>) => {
    try {
      return await host.request(...args)
    } catch (error) {
      if (args[1].backward) toldFailed += 1
      throw error
    }
  }
  const score = async (
    data: readonly Datum[],
    loss: Loss,
    backward: boolean,
  ): Promise<LossResult> => {
    checkOpen()
    const packed = checkedData(data, loss, backward)
    const { logprobs, ...result } = await request(
      'forward',
      { learner: id, data: packed, loss, backward },
      { transfer: buffersOf(packed) },
    )
    const spans = spansOf({
      ...packed,
      lengths: Int32Array.from(data, ({ targets }) => targets.length),
    })
    return {
      ...result,
      logprobs: spans.map(({ start, length }) => logprobs.slice(start, start + length)),
    }
  }
  return {
    specVersion: 'learner/1',
    model,
    get steps() {
      return steps
    },
    forward: (data, loss) => score(data, loss, false),
    forwardBackward: (data, loss) => score(data, loss, true),
    async optimStep(adam) {
      checkOpen()
      const settings = checkOptions('optimStep', adamSchema, adam)
      if (refused > toldRefused) throw missingData()
      const { step, gradientNorm } = await host.request('step', {
        learner: id,
        adam: settings,
        knownFailures: toldFailed,
      })
      steps = step
      return { metrics: { grad_norm: gradientNorm } }
    },
    async save(name) {
      checkOpen()
      return await host.request('save', { learner: id, name })
    },
    async publish({ name, step } = {}) {
      checkOpen()
      const named = name === undefined ? {} : { name }
      return await publish(
        (sampler) => host.request('publish', { learner: id, sampler, ...named }),
        step,
      )
    },
    async close() {
      if (closed) return
      closed = true
      await host.request('closeLearner', { learner: id }).catch(ignoreClosed)
    },
  }
}

function checkData(data: readonly Datum[], loss: Loss, shape: ModelShape): void {
  if (data.length === 0) throw new DataError('there is no datum; skip the call instead')
  data.forEach((datum, index) => {
    try {
      checkDatum(datum, loss)
      const ids = datum.input.map((chunk) => {
        if (chunk.type === 'tokens') return chunk.ids
        throw new UnsupportedError('the embedded backend takes no images')
      })
      for (const part of [...ids, datum.targets]) checkIds(part, shape)
      if (datum.targets.length > shape.contextWindow) {
        throw new DataError(
          `it has ${datum.targets.length} positions, the context window ${shape.contextWindow}`,
        )
      }
    } catch (error) {
      if (DataError.is(error, 'DATA'))
        throw new DataError(`datum ${index}: ${error.message}`, { cause: error })
      throw error
    }
  })
}

function buffersOf(data: PackedData): readonly ArrayBuffer[] {
  return Object.values(data).flatMap((array: Int32Array | Float32Array | undefined) =>
    array === undefined ? [] : [array.buffer as ArrayBuffer],
  )
}
