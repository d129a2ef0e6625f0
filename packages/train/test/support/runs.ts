import { tokenPrompt, type Backend, type CheckpointRef } from '@tiltyard/core'
import { memoryRunIndex, type MemoryRunIndex, type SimulatedClock } from '@tiltyard/testkit'

import {
  train,
  type RunControl,
  type StepReport,
  type TrainingConfig,
  type TrainingResult,
} from '../../src/index.ts'
import { letterBackend, letterTraining, VOCABULARY } from './letters.ts'

/** A place where runs are made and found again: what survives a process. */
export interface Place {
  readonly index: MemoryRunIndex
  readonly backend: Backend
}

export function newPlace(): Place {
  return { index: memoryRunIndex(), backend: letterBackend() }
}

export interface Trained {
  readonly reports: readonly StepReport[]
  readonly result: TrainingResult
}

/** Runs the letters' training to its end. */
export async function trainThere(
  place: Place,
  config: Partial<TrainingConfig> = {},
  control: RunControl = {},
): Promise<Trained> {
  const run = train(letterTraining({ ...place, ...config }), control)
  const reports: StepReport[] = []
  for await (const report of run) reports.push(report)
  return { reports, result: await run.finish() }
}

/** Everything that a checkpoint's weights say: the log-probability of each letter after each. */
export async function weightsOf(backend: Backend, checkpoint: CheckpointRef): Promise<string> {
  const sampler = await backend.sampler({ checkpoint })
  const ids = Array.from({ length: VOCABULARY }, (_, id) => id)
  const pairs = ids.flatMap((first) => ids.map((second) => [first, second]))
  const scored = await Promise.all(pairs.map((pair) => sampler.logprobs(tokenPrompt(pair))))
  await sampler.close()
  return scored.map(([, logprob]) => logprob).join(' ')
}

/** The metrics of a run as they are read, times apart. */
export async function metricsOf({ index }: Place, run = 'letters'): Promise<readonly string[]> {
  const { metrics } = await index.run(run)
  return metrics.map(({ split, evaluation, step, values }) =>
    JSON.stringify({ split, evaluation, step, values }),
  )
}

/** Lets so much time pass and no more, a little in each turn of the event loop, while others go on. */
export async function pass(clock: SimulatedClock, milliseconds: number): Promise<void> {
  const little = 10
  for (let passed = 0; passed < milliseconds; passed += little) await clock.advance(little)
}
