import {
  DataError,
  StateError,
  checkDatum,
  createStepGuard,
  type Datum,
  type Learner,
  type Loss,
  type Sampler,
} from '@tiltyard/core'

import { lossValue } from './loss-value.ts'
import { logprobsOf, type TrainingModel } from './training-model.ts'
import { wireDatum, wireLoss } from './wire/training-data.ts'

export interface TinkerLearnerParts {
  readonly name: string
  readonly model: TrainingModel
  /** Steps that a loaded checkpoint had made. */
  readonly steps: number
  readonly openSampler: (
    at: { readonly session: string } | { readonly path: string },
    step: number,
  ) => Promise<Sampler>
}

/** Under this key a checkpoint tells how many optimizer steps it has seen; the wire has no word for it. */
export const STEPS_KEY = 'optimizer_steps'

/** Names that every service takes, in a path too. */
const NAME = /^[\w.-]{1,255}$/

export function tinkerLearner(parts: TinkerLearnerParts): Learner {
  const { name, model, openSampler } = parts
  // Steps asked for, and steps known to be made.
  let asked = parts.steps
  let made = parts.steps
  let closing: Promise<void> | undefined

  const checkOpen = () => {
    if (closing !== undefined) throw new StateError('the learner is closed')
  }

  const guard = createStepGuard()

  const run = async (data: readonly Datum[], loss: Loss, how: 'forward' | 'forwardBackward') => {
    checkOpen()
    if (data.length === 0) throw new DataError('no data given')
    for (const [index, datum] of data.entries()) checkOne(datum, loss, index)
    const batch = data.map((datum) => wireDatum(datum, loss.name))
    const { outputs, metrics } = await model[how](batch, wireLoss(loss))
    if (outputs.length !== data.length)
      throw new DataError(`the service answered for ${outputs.length} of ${data.length} data`)
    const logprobs = outputs.map(logprobsOf)
    return { logprobs, loss: metrics['loss:sum'] ?? lossValue(data, loss, logprobs), metrics }
  }

  return {
    specVersion: 'learner/1',
    model: name,
    get steps() {
      return made
    },
    forward: (data, loss) => run(data, loss, 'forward'),
    forwardBackward: (data, loss) => guard.follow(run(data, loss, 'forwardBackward')),
    async optimStep(adam) {
      checkOpen()
      asked += 1
      try {
        const metrics = await model.optimStep(adam, guard.expect())
        made += 1
        return { metrics }
      } catch (error) {
        asked -= 1
        throw error
      }
    },
    async save(checkpoint, { ttlSeconds } = {}) {
      checkOpen()
      checkName(checkpoint)
      const path = await model.saveWeights(checkpoint, {
        ...(ttlSeconds !== undefined && { ttlSeconds }),
        userMetadata: { [STEPS_KEY]: String(asked) },
      })
      return { path, kind: 'training' }
    },
    async publish({ name: checkpoint, ttlSeconds, step } = {}) {
      checkOpen()
      const at = step ?? asked
      if (checkpoint === undefined) return openSampler({ session: await model.openSampler() }, at)
      checkName(checkpoint)
      const path = await model.saveWeightsForSampler(checkpoint, {
        ...(ttlSeconds !== undefined && { ttlSeconds }),
        userMetadata: { [STEPS_KEY]: String(at) },
      })
      return openSampler({ path }, at)
    },
    close() {
      // A service that can't unload, or is gone, frees the model when the session ends.
      closing ??= model.unload().catch(() => undefined)
      return closing
    },
  }
}

function checkOne(datum: Datum, loss: Loss, index: number): void {
  try {
    checkDatum(datum, loss)
  } catch (error) {
    throw new DataError(
      `datum ${index}: ${error instanceof Error ? error.message : String(error)}`,
      {
        cause: error,
        details: { datum: index },
      },
    )
  }
}

function checkName(checkpoint: string): void {
  if (NAME.test(checkpoint)) return
  throw new DataError(
    `"${checkpoint}" is no name for a checkpoint; up to 255 letters, digits, "-", "_" and "." are`,
  )
}
