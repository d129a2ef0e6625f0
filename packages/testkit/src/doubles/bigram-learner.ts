import {
  DataError,
  StateError,
  adamDefaults,
  checkDatum,
  createStepGuard,
  promptIds,
  createPrompt,
  type AdamParams,
  type CheckpointRef,
  type Datum,
  type Learner,
  type Loss,
  type LossResult,
  type Sampler,
} from '@tiltyard/core'

import { differentiate, type Table } from './bigram-policy.ts'

/** Immutable: a step makes new arrays. */
export interface LearnerState {
  readonly table: Table
  readonly steps: number
  /** AdamW's running averages of the gradient and of its square. */
  readonly moments?: {
    readonly first: Float64Array
    readonly second: Float64Array
    readonly count: number
  }
}

export interface BigramLearnerParts {
  readonly model: string
  readonly base: Table
  readonly contextWindow: number
  readonly loaded?: LearnerState
  readonly optimizer?: boolean
  readonly save: (state: LearnerState, name: string, kind: CheckpointRef['kind']) => CheckpointRef
  readonly openSampler: (state: LearnerState, step: number, checkpoint?: CheckpointRef) => Sampler
}

export function bigramLearner(parts: BigramLearnerParts): Learner {
  const { model, base, contextWindow, loaded, optimizer } = parts
  let state: LearnerState = loaded ?? { table: base, steps: 0 }
  if (optimizer === false) state = { table: state.table, steps: state.steps }
  let gradient = new Float64Array(base.values.length)
  const guard = createStepGuard()
  let closed = false
  let tail: Promise<unknown> = Promise.resolve()

  /** Runs calls one after the other, in the order in which they were made. */
  const inOrder = <T>(work: () => T): Promise<T> => {
    if (closed) return Promise.reject(new StateError('the learner is closed'))
    const result = tail.then(work)
    tail = result.catch(() => {})
    return result
  }

  const evaluate = (data: readonly Datum[], loss: Loss) => {
    if (data.length === 0) throw new DataError('no data given')
    const each = data.map((datum) => {
      checkDatum(datum, loss)
      const ids = promptIds(createPrompt(datum.input))
      if (ids.length > contextWindow)
        throw new DataError(
          `a datum of ${ids.length} tokens; the context window has ${contextWindow}`,
        )
      for (const id of [...ids, ...datum.targets])
        if (id < 0 || id >= base.size) throw new DataError(`id ${id} is not below ${base.size}`)
      return differentiate(state.table, ids, datum, loss)
    })
    const total = each.reduce((sum, part) => sum + part.loss, 0)
    const result: LossResult = {
      logprobs: each.map(({ logprobs }) => logprobs),
      loss: total,
      metrics: { 'loss:sum': total },
    }
    return { result, gradients: each.map((part) => part.gradient) }
  }

  return {
    specVersion: 'learner/1',
    model,
    get steps() {
      return state.steps
    },
    forward: (data, loss) => inOrder(() => evaluate(data, loss).result),
    forwardBackward: (data, loss) =>
      guard.follow(
        inOrder(() => {
          const { result, gradients } = evaluate(data, loss)
          const sum = gradient.map((value, at) =>
            gradients.reduce((whole, part) => whole + part[at]!, value),
          )
          if (!sum.every(Number.isFinite)) throw new DataError('the gradient is not finite')
          gradient = sum
          return result
        }),
      ),
    optimStep: (adam) => {
      const checkData = guard.expect()
      return inOrder(() => {
        checkData()
        const norm = Math.hypot(...gradient)
        state = adamStep(state, gradient, norm, adam)
        gradient = new Float64Array(gradient.length)
        return { metrics: { grad_norm: norm } }
      })
    },
    save: (name) => inOrder(() => parts.save(state, name, 'training')),
    publish: ({ name, step } = {}) =>
      inOrder(() => {
        const kept = name === undefined ? undefined : parts.save(state, name, 'sampling')
        return parts.openSampler(state, step ?? state.steps, kept)
      }),
    async close() {
      closed = true
      await tail
    },
  }
}

function adamStep(
  { table, steps, moments }: LearnerState,
  gradient: Float64Array,
  norm: number,
  adam: AdamParams,
): LearnerState {
  const { learningRate, beta1, beta2, epsilon, weightDecay, clipNorm } = {
    ...adamDefaults,
    ...adam,
  }
  const scale = clipNorm > 0 && norm > clipNorm ? clipNorm / norm : 1
  const count = (moments?.count ?? 0) + 1
  const first = gradient.map((g, at) => beta1 * (moments?.first[at] ?? 0) + (1 - beta1) * g * scale)
  const second = gradient.map(
    (g, at) => beta2 * (moments?.second[at] ?? 0) + (1 - beta2) * (g * scale) ** 2,
  )
  const values = table.values.map((value, at) => {
    const mean = first[at]! / (1 - beta1 ** count)
    const spread = Math.sqrt(second[at]! / (1 - beta2 ** count))
    return value * (1 - learningRate * weightDecay) - (learningRate * mean) / (spread + epsilon)
  })
  return {
    table: { size: table.size, values },
    steps: steps + 1,
    moments: { first, second, count },
  }
}
