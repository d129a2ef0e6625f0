import {
  tokenPrompt,
  type EndReason,
  type EpisodeOutcome,
  type PlayedReply,
  type RenderedPrompt,
  type Score,
} from '@tiltyard/core'
import type { PlayedEpisode, PlayedGroup } from '@tiltyard/rollout'

/** Played things written by hand. */

export interface ReplyFacts extends Partial<PlayedReply> {
  readonly version?: PlayedReply['version']
  readonly stop?: 'stop' | 'length'
}

export function playedReply(
  prompt: RenderedPrompt | readonly number[],
  ids: readonly number[],
  logprobs: readonly number[] = ids.map(() => -1),
  { stop = 'stop', ...facts }: ReplyFacts = {},
): PlayedReply {
  return {
    prompt: 'chunks' in prompt ? prompt : tokenPrompt(prompt),
    sample: { ids: Int32Array.from(ids), logprobs: Float32Array.from(logprobs), stop },
    version: { id: 'v0', step: 0 },
    sampling: {},
    message: { role: 'assistant', content: '' },
    termination: stop === 'stop' ? 'stop' : 'length',
    malformed: [],
    trained: true,
    ms: 1,
    ...facts,
  }
}

export interface EpisodeFacts {
  /** Absent: unscored. */
  readonly reward?: number
  readonly replies?: readonly PlayedReply[]
  readonly end?: EndReason
  readonly metrics?: Readonly<Record<string, number>>
  readonly scores?: Readonly<Record<string, Score>>
  readonly member?: number
  readonly ms?: number
}

function playedEpisode(facts: EpisodeFacts = {}): PlayedEpisode {
  const { reward, end = { kind: 'completed' }, metrics = {}, scores = {} } = facts
  const outcome: EpisodeOutcome = { end, scores, metrics }
  return {
    key: { split: 'train', step: 0, group: 0, member: facts.member ?? 0, attempt: 0 },
    task: { id: 'task', fingerprint: 'task' },
    end,
    outcome,
    reward: reward === undefined ? { unscored: 'no score' } : { reward },
    replies: facts.replies ?? [playedReply([1], [2])],
    metrics,
    startedAt: 0,
    ms: facts.ms ?? 1,
  }
}

export interface GroupFacts {
  readonly tags?: readonly string[]
  readonly size?: number
  readonly dropped?: string
  readonly failures?: PlayedGroup['failures']
  readonly ms?: number
  readonly group?: number
}

export function playedGroup(
  episodes: readonly EpisodeFacts[],
  facts: GroupFacts = {},
): PlayedGroup {
  const { tags, dropped } = facts
  return {
    key: { split: 'train', step: 0, group: facts.group ?? 0 },
    task: { id: 'task', fingerprint: 'task', ...(tags === undefined ? {} : { tags }) },
    size: facts.size ?? episodes.length,
    episodes: episodes.map((each, member) => playedEpisode({ member, ...each })),
    failures: facts.failures ?? [],
    ...(dropped === undefined ? {} : { dropped }),
    ms: facts.ms ?? 1,
  }
}

/** The group whose members have these rewards. */
export function rewarded(...rewards: readonly number[]): PlayedGroup {
  return playedGroup(rewards.map((reward) => ({ reward })))
}
