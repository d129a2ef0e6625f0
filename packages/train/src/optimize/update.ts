import {
  checkDatum,
  type AdamParams,
  type Datum,
  type Learner,
  type Loss,
  type LossResult,
} from '@tiltyard/core'

import { packByTokens, splitEvenly } from './split.ts'

/** What a run of learner calls came to. */
export interface UpdateResult {
  /** log-probabilities of the targets, one array per datum, in the order of the data. */
  readonly logprobs: readonly Float32Array[]
  /** Summed over the data. */
  readonly loss: number
  /** What the backend told, of the last call of each kind. */
  readonly metrics: Readonly<Record<string, number>>
}

export interface UpdateOptions {
  readonly loss: Loss
  /** Most tokens in one forward-backward call. */
  readonly tokensPerCall?: number | undefined
  /** Optimizer steps to make; the data is cut into so many runs, one before each. 0: the gradients wait. */
  readonly updates: number
  /** Settings of the next optimizer step. Asked once for each. */
  readonly adam: () => AdamParams
  /** Gradients of earlier calls wait for an optimizer step, so one is made even without data. */
  readonly pending?: boolean
}

/** Calls that were made; their results follow. */
export interface IssuedUpdate {
  readonly updates: number
  readonly settled: Promise<UpdateResult>
}

/**
 * Makes the forward-backward and optimizer calls for some data, back to back, without waiting for their answers: the learner
 * keeps their order. Never an optimizer step without a gradient, and nothing is sent before all data was checked.
 * @throws DataError naming what is wrong with a datum.
 */
export function issueUpdate(
  learner: Learner,
  data: readonly Datum[],
  options: UpdateOptions,
): IssuedUpdate {
  const { loss, updates, adam, pending = false } = options
  for (const datum of data) checkDatum(datum, loss)
  const accumulated: Promise<PartResult>[] = []
  const stepped: Promise<Readonly<Record<string, number>>>[] = []
  const step = () => {
    stepped.push(learner.optimStep(adam()).then(({ metrics }) => metrics))
  }
  const runs = splitEvenly(data, Math.max(1, updates))
  for (const run of runs) {
    accumulated.push(accumulate(learner, run, loss, options.tokensPerCall))
    if (updates > 0) step()
  }
  if (runs.length === 0 && pending && updates > 0) step()
  const settled = settle(accumulated, stepped)
  return { updates: stepped.length, settled }
}

interface PartResult {
  readonly results: readonly LossResult[]
  readonly packs: readonly (readonly number[])[]
  readonly size: number
}

async function accumulate(
  learner: Learner,
  data: readonly Datum[],
  loss: Loss,
  tokensPerCall: number | undefined,
): Promise<PartResult> {
  const packs = packByTokens(
    data.map(({ targets }) => targets.length),
    tokensPerCall,
  )
  const calls = packs.map((pack) =>
    learner.forwardBackward(
      pack.map((index) => data[index]!),
      loss,
    ),
  )
  return { results: await Promise.all(calls), packs, size: data.length }
}

async function settle(
  accumulated: readonly Promise<PartResult>[],
  stepped: readonly Promise<Readonly<Record<string, number>>>[],
): Promise<UpdateResult> {
  // Waits for all, so that a failure of one leaves no rejection that nobody holds.
  const settledSteps = Promise.all(stepped)
  settledSteps.catch(() => {})
  const parts = await Promise.all(accumulated)
  const steps = await settledSteps
  const logprobs: Float32Array[] = []
  let loss = 0
  const metrics: Record<string, number> = {}
  for (const { results, packs, size } of parts) {
    const start = logprobs.length
    logprobs.length += size
    for (const [call, result] of results.entries()) {
      loss += result.loss
      Object.assign(metrics, result.metrics)
      for (const [place, index] of packs[call]!.entries())
        logprobs[start + index] = result.logprobs[place]!
    }
  }
  for (const step of steps) Object.assign(metrics, step)
  return { logprobs, loss, metrics }
}
