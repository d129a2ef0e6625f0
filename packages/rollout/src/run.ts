import {
  DeadlineError,
  silentLogger,
  systemClock,
  type Clock,
  type Limits,
  type Logger,
  type RunEvent,
} from '@tiltyard/core'

import { createAlarms, type Alarms } from './alarms.ts'
import type { CancelSignal } from './cancellation.ts'
import { DEFAULT_RETRIES, type FailurePolicy } from './failure-policy.ts'
import type { RolloutEvent, RolloutOptions, Waits } from './options.ts'
import { checkRolloutOptions } from './schemas.ts'
import { settle } from './settle.ts'
import { waitDefaults } from './waits.ts'

/** The options of a rollout, checked and with their defaults. */
export interface Run extends Omit<RolloutOptions, 'signal'> {
  /** Cancels everything. */
  readonly signal?: CancelSignal
  readonly limits: Limits
  readonly waits: Required<Waits>
  readonly failures: FailurePolicy
  readonly scoreAttempts: number
  readonly logger: Logger
  readonly clock: Clock
  /** For all deadlines. Closed by whoever made the run. */
  readonly alarms: Alarms
  readonly wallClock: () => number
  /** Tells the observer, which can't break anything. */
  notify(event: RolloutEvent): void
}

const DEFAULT_SCORE_ATTEMPTS = 2

/** @throws ConfigError */
export function createRun(options: RolloutOptions): Run {
  checkRolloutOptions(options)
  const { logger = silentLogger, clock = systemClock } = options
  return {
    ...options,
    limits: options.limits ?? {},
    waits: { ...waitDefaults, ...options.waits },
    failures: options.failures ?? { kind: 'retry', retries: DEFAULT_RETRIES },
    scoreAttempts: options.scoreAttempts ?? DEFAULT_SCORE_ATTEMPTS,
    logger,
    clock,
    alarms: createAlarms(clock),
    wallClock: options.wallClock ?? Date.now,
    notify: guardedObserver(options.observer, logger),
  }
}

function guardedObserver(
  observer: ((event: RolloutEvent) => void) | undefined,
  logger: Logger,
): (event: RolloutEvent) => void {
  if (observer === undefined) return () => {}
  const failed = (type: string, error: unknown) => {
    const name = error instanceof Error ? error.name : typeof error
    logger.warn('an observer failed and was ignored', { event: type, error: name })
  }
  return (event) => {
    try {
      // An async function passes for one that returns nothing; its rejection must have an owner.
      const result: unknown = observer(event)
      if (result instanceof Promise) result.catch((error: unknown) => failed(event.type, error))
    } catch (error) {
      failed(event.type, error)
    }
  }
}

/**
 * Hands an event to the run's record. Once `signal` is aborted the record gets no more than `cancelMs` to take it.
 * @throws what the record said.
 */
export async function appendRecord(run: Run, event: RunEvent, signal: CancelSignal): Promise<void> {
  const { writer, waits, alarms } = run
  if (writer === undefined) return
  const { cancelMs } = waits
  const time = signal.aborted ? { milliseconds: cancelMs } : { signal, cancelMs }
  const waitingFor = `the record to take an event of kind ${event.type}`
  const result = await settle(() => writer.append(event), {
    waitingFor,
    graceMs: 0,
    alarms,
    ...time,
  })
  const end = result.kind === 'late' ? result.end : result
  if (end.kind === 'failed') throw end.error
  if (end.kind === 'leftBehind') throw new DeadlineError(waitingFor, cancelMs)
}
