import { ConfigError } from '@tiltyard/core'

import type { Schedule } from '../config/options.ts'

/**
 * Multiplier of the learning rate for optimizer step s (0-based) of S. With b = warmup + hold and progress x = (s − b) / (S − b):
 *
 *     constant 1      linear 1 − x      cosine ½ · (1 + cos(π·x))      then floor + (1 − floor) · that
 *
 * During warmup: (s + 1) / (warmup + 1); then 1 for `hold` steps. Linear at 5 of 10 gives 0.5, cosine at 9 of 10 gives 0.0244717.
 * Steps beyond S stay at the end. What counts is the trainer's optimizer steps, not rows or data.
 * @throws ConfigError for a shape that needs an end when `total` is unknown or not positive.
 */
export function scheduleMultiplier(
  schedule: Schedule,
  step: number,
  total: number | undefined,
): number {
  const { shape, warmup = 0, hold = 0, floor = 0 } = schedule
  if (step < warmup) return (step + 1) / (warmup + 1)
  if (shape === 'constant') return 1
  if (total === undefined || total <= 0) {
    throw new ConfigError('optimizer', [
      {
        at: 'optimizer.schedule.shape',
        message: `"${shape}" needs the number of steps; set steps, or use "constant"`,
      },
    ])
  }
  const begin = warmup + hold
  if (step < begin) return 1
  const progress = total <= begin ? 1 : Math.min(1, (step - begin) / (total - begin))
  const fall = shape === 'linear' ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2
  return floor + (1 - floor) * fall
}
