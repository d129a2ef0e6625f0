import {
  TiltyardError,
  type EndReason,
  type Episode,
  type EpisodeOutcome,
  type Reward,
} from '@tiltyard/core'

import type { EpisodeError } from './episode-error.ts'
import { createEpisodeRecorder, type EpisodeRecorder } from './episode-recorder.ts'
import {
  closeEpisode,
  endEpisode,
  failedEnding,
  openEpisode,
  playOpened,
  type Ending,
  type LifecycleOptions,
} from './lifecycle.ts'
import { playMetricsOf } from './play-metrics.ts'
import type { PlayedEpisode } from './played.ts'
import { episodeEvent, scoreEvent, type EpisodePlace } from './recorded.ts'
import { appendRecord } from './run.ts'
import { askScorer, rewardOf, soundOutcome, type Scoring, type ScoringOptions } from './scoring.ts'
import { sequencesOf, type TokenSequence } from './sequences.ts'

/** What became of one attempt at an episode. */
export type Attempt =
  | { readonly kind: 'played'; readonly episode: PlayedEpisode }
  | { readonly kind: 'failed'; readonly error: EpisodeError }
  | { readonly kind: 'cancelled' }

/**
 * Plays an episode once: waits for a slot, opens, plays, ends, scores, closes; then, with the slot free again, judges and
 * rewards. What was opened is ended and closed exactly once, whatever happens. Never rejects.
 */
export async function playAttempt(options: LifecycleOptions): Promise<Attempt> {
  const { run, plan, key, signal } = options
  const slot = await run.slots.acquire(signal).catch(() => undefined)
  if (slot === undefined) return { kind: 'cancelled' }
  let played: Attempt | Scored
  try {
    run.notify({ type: 'start', key, task: plan.task })
    played = await playInSlot(options)
  } finally {
    slot.release()
  }
  const attempt = played.kind === 'scored' ? await conclude(options, played) : played
  if (attempt.kind === 'cancelled') run.notify({ type: 'cancelled', key })
  return attempt
}

/** A play that ended and was scored; its slot is free. */
interface Scored {
  readonly kind: 'scored'
  readonly episode: Episode
  readonly end: EndReason
  readonly ms: number
  readonly startedAt: number
  readonly recorder: EpisodeRecorder
  readonly sequences: readonly TokenSequence[]
  readonly scoring: Scoring
}

async function playInSlot(options: LifecycleOptions): Promise<Attempt | Scored> {
  const { plan, run, key } = options
  const startedAt = run.wallClock()
  const place = { key, task: plan.task, seed: plan.seed, startedAt }
  const recorder = createEpisodeRecorder({
    place,
    writer: run.writer,
    onReply: (reply) => run.notify({ type: 'reply', key, reply }),
    onLate: (what) => run.notify({ type: 'late', key, what }),
  })
  const begin = run.clock.now()
  const stop = new AbortController()
  const opened = await openEpisode(options, stop)
  if ('end' in opened) return overAlready(await recordEnd(options, place, recorder, opened))
  const { episode } = opened
  const { instance } = episode
  const known = instance === undefined ? place : { ...place, instance }
  try {
    const played = await playOpened(options, episode, recorder, stop)
    recorder.close()
    const ended = await endEpisode(options, episode, played)
    const ms = run.clock.now() - begin
    const recorded = await recordEnd(options, known, recorder, ended, ms)
    const { end, sequences } = recorded
    if (end.kind === 'failed' || end.kind === 'cancelled') return overAlready(recorded)
    const scoring = await askScorer((signal) => episode.score(signal), scoringOptions(options))
    return { kind: 'scored', episode, end, ms, startedAt, recorder, sequences, scoring }
  } finally {
    await closeEpisode(options, episode)
  }
}

/** Joins the play's tokens and puts it into the record, however it ended. */
async function recordEnd(
  options: LifecycleOptions,
  place: EpisodePlace,
  recorder: EpisodeRecorder,
  ending: Ending,
  ms = 0,
): Promise<Ending & { readonly sequences: readonly TokenSequence[] }> {
  const { run, signal } = options
  let sequences: readonly TokenSequence[] = []
  try {
    sequences = sequencesOf(recorder.replies)
    if (run.writer !== undefined) {
      const event = episodeEvent(place, { ...recorder, sequences }, ending.end, ms)
      await appendRecord(run, event, signal)
    }
    return { ...ending, sequences }
  } catch (error) {
    if (ending.error !== undefined) return { ...ending, sequences }
    return { ...failedEnding(options, 'record', error), sequences }
  }
}

function overAlready({ error }: Ending): Attempt {
  return error === undefined ? { kind: 'cancelled' } : { kind: 'failed', error }
}

function scoringOptions({ run, signal }: LifecycleOptions): ScoringOptions {
  const { scoreMs, graceMs, cancelMs } = run.waits
  return {
    attempts: run.scoreAttempts,
    milliseconds: run.limits.verifierMs ?? scoreMs,
    graceMs,
    cancelMs,
    signal,
    alarms: run.alarms,
  }
}

/** Judges what needs the record only, rewards, and writes the score down. */
async function conclude(options: LifecycleOptions, scored: Scored): Promise<Attempt> {
  const { run, plan, key, signal } = options
  const scoring = scored.episode.judge === undefined ? scored.scoring : await judge(options, scored)
  if (scoring.kind === 'cancelled') return { kind: 'cancelled' }
  const metrics = playMetricsOf(scored.recorder.counts, scored.end, scored.sequences)
  let result: { readonly outcome?: EpisodeOutcome; readonly reward: Reward }
  try {
    if (scoring.kind === 'scored') {
      const outcome = soundOutcome(scoring.outcome, scored.end, metrics)
      result = { outcome, reward: rewardOf(plan.reward, outcome) }
    } else {
      result = { reward: await unscored(options, scoring.error) }
    }
  } catch (error) {
    return overAlready(failedEnding(options, 'score', error))
  }
  const episode: PlayedEpisode = {
    key,
    task: plan.task,
    end: scored.end,
    ...result,
    replies: scored.recorder.replies,
    metrics: result.outcome?.metrics ?? metrics,
    startedAt: scored.startedAt,
    ms: scored.ms,
  }
  try {
    // A group's rule may still change the reward; the group writes it down then.
    if (run.writer !== undefined && plan.groupReward === undefined)
      await appendRecord(run, scoreEvent(episode), signal)
  } catch (error) {
    return overAlready(failedEnding(options, 'record', error))
  }
  return { kind: 'played', episode }
}

/** Told beside the attempt, which stands. @throws ConfigError: then the set-up is wrong, not the scorer. */
async function unscored({ onSideFailure }: LifecycleOptions, error: unknown): Promise<Reward> {
  if (TiltyardError.is(error, 'CONFIG')) throw error
  await onSideFailure('score', error)
  return { unscored: `scoring failed: ${error instanceof Error ? error.message : String(error)}` }
}

/** Adds the scores that need no slot. A judge that fails leaves the episode unscored: a part of its scores is no score. */
async function judge(options: LifecycleOptions, { episode, scoring }: Scored): Promise<Scoring> {
  if (scoring.kind !== 'scored') return scoring
  const { run, signal } = options
  const slot = await run.judgeSlots?.acquire(signal).catch(() => undefined)
  if (signal.aborted) {
    slot?.release()
    return { kind: 'cancelled' }
  }
  try {
    return await askScorer(
      (inner) => episode.judge!(scoring.outcome, inner),
      scoringOptions(options),
    )
  } finally {
    slot?.release()
  }
}
