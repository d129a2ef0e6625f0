import {
  deriveSeed,
  RECORD_VERSION,
  silentLogger,
  systemClock,
  type Capabilities,
  type CheckpointRef,
  type Clock,
  type JsonObject,
  type Learner,
  type LearnerOptions,
  type Logger,
  type RunRecord,
} from '@tiltyard/core'

import type { ProgressEvent, RunControl } from '../config/control.ts'
import { defaultAdaptation } from '../config/defaults.ts'
import type { Whereabouts } from '../config/training.ts'
import type { Warning } from '../report.ts'
import type { Fingerprints } from './identity.ts'
import { openRun, type OpenedRun } from './open.ts'

/** What every kind of run stands on. */
export interface Session {
  readonly config: Whereabouts
  readonly control: RunControl
  readonly seed: number
  readonly capabilities: Capabilities
  readonly opened: OpenedRun
  readonly clock: Clock
  readonly wallClock: () => number
  readonly logger: Logger
  /** Aborts when the run is to end at once, and when it has ended. */
  readonly signal: AbortSignal
  /** Tells the observer, which can't break anything. */
  notify(event: ProgressEvent): void
  /** Ends what still goes on. */
  end(reason: unknown): void
}

/** Claims the run and gathers what its parts need. */
export async function openSession(
  config: Whereabouts,
  control: RunControl,
  identity: {
    readonly capabilities: Capabilities
    readonly fingerprints: Fingerprints
    readonly described: JsonObject
    /** Steps in all, when known. */
    readonly steps: number | undefined
  },
): Promise<Session> {
  const { seed = 0, index, backend } = config
  const { wallClock = Date.now, clock = systemClock, logger = silentLogger } = control
  const record: RunRecord = {
    version: RECORD_VERSION,
    name: config.run,
    startedAt: wallClock(),
    seed,
    config: identity.described,
    fingerprints: { ...identity.fingerprints },
    versions: { ...control.versions, executor: identity.capabilities.executor },
    ...(control.git === undefined ? {} : { git: control.git }),
  }
  const { fingerprints, steps } = identity
  const opened = await openRun({ index, backend, record, fingerprints, steps, control })
  const ended = new AbortController()
  const signal =
    control.signal === undefined ? ended.signal : AbortSignal.any([control.signal, ended.signal])
  return {
    config,
    control,
    seed,
    capabilities: identity.capabilities,
    opened,
    clock,
    wallClock,
    logger,
    signal,
    notify(event) {
      try {
        control.observer?.(event)
      } catch (error) {
        logger.warn('an observer failed and was ignored', { error: String(error) })
      }
    },
    end: (reason) => ended.abort(reason),
  }
}

/** The learner of a run: from its checkpoint with the optimizer, or from the given weights with a new one. */
export async function openLearner(
  { config, opened, seed }: Session,
  start: CheckpointRef | undefined,
): Promise<{ readonly learner: Learner; readonly warnings: readonly Warning[] }> {
  const { backend, model } = config
  const adaptation: LearnerOptions['adaptation'] = config.adaptation ?? defaultAdaptation
  const options: LearnerOptions = {
    model,
    adaptation:
      adaptation === 'full'
        ? 'full'
        : { ...adaptation, seed: adaptation.seed ?? deriveSeed(seed, 'adapter') },
  }
  const resume = opened.checkpoint?.training
  if (resume === undefined) {
    const learner = await backend.learner(
      start === undefined ? options : { ...options, from: start, optimizer: false },
    )
    return { learner, warnings: [] }
  }
  const learner = await backend.learner({ ...options, from: resume, optimizer: true })
  const made = opened.totals['optimizer_steps'] ?? 0
  if (made === 0 || learner.steps > 0) return { learner, warnings: [] }
  const message = `the optimizer did not come back with ${opened.checkpoint!.name}: its averages begin anew after ${made} optimizer steps`
  return { learner, warnings: [{ code: 'cold_optimizer', message }] }
}

/** Says at once what the first report will say too. */
export function warnAtOpening(logger: Logger, warnings: readonly Warning[]): void {
  for (const { code, message } of warnings) logger.warn(message, { code })
}
