import { createRetryBudget, createSlots, type RolloutOptions } from '@tiltyard/rollout'

import { DEFAULT_SLOTS } from '../config/defaults.ts'
import type { TrainingConfig } from '../config/training.ts'
import type { Session } from './session.ts'

/**
 * How a run plays, in training and evaluation alike: one set of slots, one budget. `onLate` hears of each thing that came after its
 * episode's end.
 */
export function rolloutOptions(
  { rollout = {}, limits }: TrainingConfig,
  session: Session,
  onLate: () => void = () => {},
): Omit<RolloutOptions, 'policy' | 'signal'> {
  const { seed, clock, wallClock, logger, opened } = session
  const { slots = DEFAULT_SLOTS, judgeSlots, retryBudget, ...rest } = rollout
  return {
    ...rest,
    ...(limits === undefined ? {} : { limits }),
    ...(judgeSlots === undefined ? {} : { judgeSlots: createSlots(judgeSlots) }),
    ...(retryBudget === undefined ? {} : { retryBudget: createRetryBudget(retryBudget) }),
    slots: createSlots(slots),
    seed,
    clock,
    wallClock,
    logger,
    writer: opened.writer,
    observer(event) {
      if (event.type === 'late') onLate()
      session.notify({ type: 'rollout', event })
    },
  }
}
