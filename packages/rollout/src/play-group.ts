import {
  ConfigError,
  episodeId,
  groupId,
  summarizeError,
  type Env,
  type Episode,
  type EpisodeKey,
  type FailurePhase,
  type GroupKey,
  type GroupPlan,
} from '@tiltyard/core'

import { playAttempt } from './attempt.ts'
import {
  createCancellation,
  throwIfCancelled,
  type Cancellation,
  type CancelSignal,
} from './cancellation.ts'
import { isFatal, type EpisodeError } from './episode-error.ts'
import { createRetryPolicy } from './failure-policy.ts'
import type { RolloutOptions } from './options.ts'
import type { AttemptFailure, PlayedEpisode, PlayedGroup } from './played.ts'
import { groupEvent, scoreEvent } from './recorded.ts'
import { appendRecord, createRun, type Run } from './run.ts'
import { withGroupRewards } from './scoring.ts'

/**
 * Plays a group: `plan.size` episodes of one task instance, each in a slot of its own, failed ones again as the failure policy
 * says. Resolves when all are over; `dropped` says why the group can't be used. Episodes that failed have no reward and are not in it.
 *
 * Rejects, after every episode was ended and closed: with the first `EpisodeError` under `failFast`; with the signal's reason; with
 * a ConfigError or UnsupportedError, because then no group can be played; with the record's StateError or StoreError.
 */
export async function playGroup(
  plan: GroupPlan,
  key: GroupKey,
  options: RolloutOptions,
): Promise<PlayedGroup> {
  const run = createRun(options)
  try {
    return await playGroupOf(run, plan, key)
  } finally {
    run.alarms.close()
  }
}

/** As `playGroup`, with options that were checked before. */
export async function playGroupOf(run: Run, plan: GroupPlan, key: GroupKey): Promise<PlayedGroup> {
  if (!Number.isInteger(plan.size) || plan.size < 1) {
    throw new ConfigError(`group ${groupId(key)}`, [
      { at: 'size', message: `expected a whole number of at least 1, got ${plan.size}` },
    ])
  }
  throwIfCancelled(run.signal)
  const begin = run.clock.now()
  const cancellation = createCancellation(run.signal)
  try {
    const group = await playMembers(run, plan, key, cancellation)
    const played: PlayedGroup = {
      key,
      task: plan.task,
      size: plan.size,
      ...group,
      ms: run.clock.now() - begin,
    }
    if (run.recordGroup !== false) await appendRecord(run, groupEvent(played), cancellation.signal)
    run.notify({ type: 'group', group: played })
    return played
  } finally {
    cancellation.unlink()
  }
}

type Members = Pick<PlayedGroup, 'episodes' | 'failures' | 'dropped'>

async function playMembers(
  run: Run,
  plan: GroupPlan,
  groupKey: GroupKey,
  cancellation: Cancellation,
): Promise<Members> {
  const { signal } = cancellation
  const retries = createRetryPolicy(run.failures, plan.size, run.retryBudget)
  const failures: AttemptFailure[] = []
  const opened = new WeakSet<Env | Episode>()
  const instances = new Set<string>()
  let stopped: { readonly error?: unknown; readonly dropped?: string } | undefined

  /** Calls the group off: with an error for the caller, or as dropped. */
  const stop = (why: { readonly error?: unknown; readonly dropped?: string }) => {
    if (stopped !== undefined || signal.aborted) return
    stopped = why
    cancellation.cancel(new Error(`group ${groupId(groupKey)} was called off`))
  }
  const report = async (key: EpisodeKey, phase: FailurePhase, cause: unknown, retried: boolean) => {
    const failure = { key, phase, error: summarizeError(cause) }
    failures.push(failure)
    run.notify({ type: 'failure', failure, retried })
    const { name, code } = failure.error
    const fields = {
      episode: episodeId(key),
      task: plan.task.id,
      phase,
      error: name,
      code,
      retried,
    }
    run.logger.warn('an episode failed', fields)
    // A record that takes nothing is reported by what comes next; a cancelled group has no time to wait for it.
    const recorded = appendRecord(run, { type: 'failure', ...failure }, signal).catch(() => {})
    if (!signal.aborted) await recorded
  }
  const onOpen = (play: Env | Episode) => {
    if (opened.has(play)) {
      throw new ConfigError(`source ${plan.source.name}`, [
        { at: 'open', message: 'gave one object for two plays; open a fresh one for each' },
      ])
    }
    opened.add(play)
    if (play.instance === undefined) return
    instances.add(play.instance)
    if (instances.size < 2) return
    const dropped = `its members play different instances: ${[...instances].join(', ')}`
    run.logger.error('a group was refused', { group: groupId(groupKey), why: dropped })
    stop({ dropped })
  }
  const giveUp = (error: EpisodeError) => {
    if (isFatal(error.phase, error.cause)) stop({ error: error.cause })
    else if (run.failures.kind === 'failFast') stop({ error })
    else if (run.failures.kind === 'retry') stop({ dropped: `no retries left: ${error.message}` })
  }

  const playMember = async (member: number): Promise<PlayedEpisode | undefined> => {
    for (let attempt = 0; ; attempt += 1) {
      const key = { ...groupKey, member, attempt }
      const onSideFailure = (phase: FailurePhase, cause: unknown) =>
        report(key, phase, cause, false)
      const result = await playAttempt({ plan, key, run, signal, onOpen, onSideFailure })
      if (result.kind === 'cancelled') return undefined
      if (result.kind === 'played') {
        retries.succeeded()
        run.notify({ type: 'episode', episode: result.episode })
        return result.episode
      }
      const { error } = result
      const isRetried = !signal.aborted && !isFatal(error.phase, error.cause) && retries.take()
      await report(key, error.phase, error.cause, isRetried)
      if (!isRetried) {
        giveUp(error)
        return undefined
      }
    }
  }

  const members = await Promise.all(
    Array.from({ length: plan.size }, async (_, member) => {
      try {
        return await playMember(member)
      } catch (error) {
        // Nothing above rejects by design; if it does, the siblings must not go on unseen.
        stop({ error })
        return undefined
      }
    }),
  )
  throwIfCancelled(run.signal)
  if (stopped !== undefined && 'error' in stopped) throw stopped.error
  const episodes = await rewardTogether(
    run,
    plan,
    members.filter((episode) => episode !== undefined),
    signal,
  )
  const dropped = stopped?.dropped ?? retries.verdict(episodes.length)
  return { episodes, failures, ...(dropped === undefined ? {} : { dropped }) }
}

/** Adds the rewards of the group's rule, if there is one, and writes the scores down that waited for it. */
async function rewardTogether(
  run: Run,
  plan: GroupPlan,
  episodes: readonly PlayedEpisode[],
  signal: CancelSignal,
): Promise<readonly PlayedEpisode[]> {
  if (plan.groupReward === undefined) return episodes
  const rewards = withGroupRewards(plan.groupReward, episodes)
  const rewarded = episodes.map((episode, index) => ({ ...episode, reward: rewards[index]! }))
  for (const episode of rewarded) await appendRecord(run, scoreEvent(episode), signal)
  return rewarded
}
