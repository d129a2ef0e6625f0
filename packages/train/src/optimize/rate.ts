import type { AdamParams } from '@tiltyard/core'

import { defaultSchedule } from '../config/defaults.ts'
import type { OptimizerOptions } from '../config/options.ts'
import { scheduleMultiplier } from './schedule.ts'

/** Settings of one optimizer step after another. */
export interface LearningRate {
  /** Of the next step; counts it. */
  readonly next: () => AdamParams
  /** Learning rate of the step before; of the first one when there was none. */
  readonly last: () => number
}

/**
 * @param progress Optimizer steps made before, and in all when known.
 * @throws ConfigError when the schedule needs an end that is not known.
 */
export function createLearningRate(
  { schedule = defaultSchedule, learningRate, ...adam }: OptimizerOptions,
  progress: { readonly made: number; readonly total: number | undefined },
): LearningRate {
  let { made } = progress
  const rateAt = (step: number) => learningRate * scheduleMultiplier(schedule, step, progress.total)
  let last = rateAt(made)
  // An unknown end is found at once, not after the warmup.
  if (schedule.warmup !== undefined) rateAt(schedule.warmup)
  return {
    next() {
      last = rateAt(made)
      made += 1
      return { ...adam, learningRate: last }
    },
    last: () => last,
  }
}
