import {
  DeadlineError,
  episodeId,
  StateError,
  summarizeError,
  type EndReason,
  type Env,
  type Episode,
  type EpisodeKey,
  type FailurePhase,
  type GroupPlan,
} from '@tiltyard/core'

import { createAlarms } from './alarms.ts'
import type { CancelSignal } from './cancellation.ts'
import { episodeOf } from './env-episode/env-episode.ts'
import { EpisodeError, phaseOf } from './episode-error.ts'
import type { EpisodeRecorder } from './episode-recorder.ts'
import type { PolicyLease } from './options.ts'
import { takePolicy } from './policy.ts'
import type { Run } from './run.ts'
import { episodeSeed } from './seeds.ts'
import { settle, type Settled } from './settle.ts'

/** The steps of an episode's life, each bounded in time, none of which rejects. */

export interface LifecycleOptions {
  readonly plan: GroupPlan
  readonly key: EpisodeKey
  readonly run: Run
  /** Cancels the attempt. */
  readonly signal: CancelSignal
  /** Told of what was opened. @throws ConfigError when it is in use already. */
  readonly onOpen: (opened: Env | Episode) => void
  /** Told of what fails beside the attempt: scoring, closing. */
  readonly onSideFailure: (phase: FailurePhase, error: unknown) => Promise<void>
}

/** How a play ended, and what broke when it failed. */
export interface Ending {
  readonly end: EndReason
  readonly error?: EpisodeError
}

const cancelled: Ending = { end: { kind: 'cancelled' } }

export function failedEnding(
  { plan, key }: LifecycleOptions,
  phase: FailurePhase,
  cause: unknown,
): Ending {
  return {
    end: { kind: 'failed', phase, error: summarizeError(cause) },
    error: new EpisodeError(phase, cause, { task: plan.task, episode: episodeId(key) }),
  }
}

/** A fresh play, to be stopped by `playStop`, or how it ended before it began. What comes too late is ended and closed all the same. */
export async function openEpisode(
  options: LifecycleOptions,
  playStop: AbortController,
): Promise<{ readonly episode: Episode } | Ending> {
  const { plan, key, run, signal } = options
  const { openMs, graceMs, cancelMs } = run.waits
  const stop = new AbortController()
  let opening: Promise<Env | Episode> | undefined
  const result = await settle(
    () => {
      opening = plan.source.open(plan.task, {
        seed: plan.seed,
        // Made for those who look at it.
        get signal() {
          return stop.signal
        },
      })
      return opening
    },
    {
      waitingFor: `the opening of task ${plan.task.id}`,
      milliseconds: openMs,
      graceMs,
      signal,
      cancelMs,
      stop,
      alarms: run.alarms,
    },
  )
  if (result.kind === 'failed') return failedEnding(options, 'open', result.error)
  if (result.kind === 'done') return adopt(options, result.value, playStop)

  const ending = result.cause === 'signal' ? cancelled : failedEnding(options, 'open', result.error)
  if (result.end.kind === 'done') await dispose(options, result.end.value, ending)
  if (result.end.kind === 'leftBehind') {
    run.notify({ type: 'late', key, what: 'opening' })
    opening?.then(
      (late) => dispose(options, late, ending),
      () => {},
    )
  }
  return ending
}

function adopt(
  options: LifecycleOptions,
  opened: Env | Episode,
  stop: AbortController,
): { readonly episode: Episode } | Ending {
  try {
    options.onOpen(opened)
    return {
      episode:
        opened.specVersion === 'episode/1'
          ? opened
          : episodeOf(opened, options.run, { alarms: options.run.alarms, stop }),
    }
  } catch (error) {
    return failedEnding(options, 'open', error)
  }
}

/** Ends and closes a play that nobody waits for. */
async function dispose(
  options: LifecycleOptions,
  opened: Env | Episode,
  ending: Ending,
): Promise<void> {
  // The group may be over by now, and its alarms closed.
  const alarms = createAlarms(options.run.clock)
  const own = { ...options, run: { ...options.run, alarms } }
  await endEpisode(own, opened, ending)
  await closeEpisode(own, opened)
  alarms.close()
}

/** Plays to the end: of the play itself, of its time, or of the run's patience. */
export async function playOpened(
  options: LifecycleOptions,
  episode: Episode,
  recorder: EpisodeRecorder,
  stop: AbortController,
): Promise<Ending> {
  const { key, run, signal } = options
  const { graceMs, cancelMs } = run.waits
  let lease: PolicyLease
  try {
    lease = takePolicy(run.policy)
  } catch (error) {
    return failedEnding(options, 'open', error)
  }
  const seed = episodeSeed(run.seed, key)
  const context = { signal: stop.signal, seed, limits: run.limits, record: recorder }
  const result = await settle(() => episode.play(lease.policy, context), {
    waitingFor: `episode ${episodeId(key)}`,
    milliseconds: run.limits.episodeMs,
    graceMs,
    signal,
    cancelMs,
    stop,
    alarms: run.alarms,
  })
  lease.release()
  if (result.kind === 'late' && result.end.kind === 'leftBehind')
    run.notify({ type: 'late', key, what: 'play' })
  return endingOf(options, result, recorder)
}

function endingOf(
  options: LifecycleOptions,
  result: Settled<EndReason>,
  { failure }: EpisodeRecorder,
): Ending {
  if (failure !== undefined) return failedEnding(options, failure.phase, failure.cause)
  if (result.kind === 'late') {
    if (result.cause === 'signal') return cancelled
    // An end that the play found by itself stands, though its time was up.
    if (result.end.kind === 'done' && isScorable(result.end.value)) return { end: result.end.value }
    return { end: { kind: 'cut', by: 'episode_time' } }
  }
  if (result.kind === 'failed') {
    const { phase, cause } = phaseOf(result.error)
    return failedEnding(options, phase, cause)
  }
  const end = result.value
  if (isScorable(end)) return { end }
  if (end.kind === 'failed') {
    const { name, message } = end.error
    const error = Object.assign(new Error(message), { name })
    return { end, error: failedEnding(options, end.phase, error).error! }
  }
  const error = new StateError('the play says that it was cancelled, and nobody cancelled it')
  return failedEnding(options, 'agent', error)
}

function isScorable(end: EndReason): boolean {
  return end.kind === 'completed' || end.kind === 'cut'
}

/** Ends the play, for the reason given or, when ending fails, for that. */
export async function endEpisode(
  options: LifecycleOptions,
  episode: Pick<Episode, 'end'>,
  ending: Ending,
): Promise<Ending> {
  const error = await bounded(options, 'the end of an episode', () => episode.end(ending.end))
  if (error === undefined) return ending
  // A failed or cancelled play stays what it is; its ending badly is told beside it.
  if (!isScorable(ending.end)) {
    await options.onSideFailure('end', error)
    return ending
  }
  return options.signal.aborted ? cancelled : failedEnding(options, 'end', error)
}

/** Frees what the play holds. Its outcome stands, whatever comes of it. */
export async function closeEpisode(
  options: LifecycleOptions,
  episode: Pick<Episode, 'close'>,
): Promise<void> {
  const error = await bounded(options, 'the closing of an episode', () => episode.close())
  if (error !== undefined) await options.onSideFailure('close', error)
}

/**
 * What went wrong with it, if anything. Ending and closing are never called off, only given less time once the run is cancelled.
 */
async function bounded(
  { run, signal }: LifecycleOptions,
  waitingFor: string,
  work: () => Promise<void>,
): Promise<unknown> {
  const { endMs, cancelMs } = run.waits
  const time = signal.aborted
    ? { milliseconds: cancelMs }
    : { milliseconds: endMs, signal, cancelMs }
  const result = await settle(work, { waitingFor, graceMs: 0, alarms: run.alarms, ...time })
  const end = result.kind === 'late' ? result.end : result
  if (end.kind === 'done') return undefined
  if (end.kind === 'failed') return end.error
  return new DeadlineError(waitingFor, signal.aborted ? cancelMs : endMs)
}
