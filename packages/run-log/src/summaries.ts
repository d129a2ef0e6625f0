import {
  isRewarded,
  type EpisodeKey,
  type EpisodeSummary,
  type GroupSummary,
  type Reward,
} from '@tiltyard/core'

import type { GroupPlace } from './layout.ts'
import { keyOf, type TrainingLine } from './lines.ts'
import type { EpisodeLines, PlaceContent } from './place.ts'

export function episodeSummary(
  place: GroupPlace,
  id: string,
  lines: EpisodeLines,
): EpisodeSummary | undefined {
  const { episode, score, training, calls } = lines
  const first = episode?.line ?? calls[0]?.line
  // A score without its episode: the episode's line is damaged, and told as a fault.
  if (first === undefined) return undefined
  const reward = score?.line.reward
  return {
    key: keyOf(place, id),
    task: first.task,
    fingerprint: first.fingerprint,
    ...(episode === undefined ? {} : { end: episode.line.end }),
    scores: score?.line.scores ?? {},
    ...(reward === undefined ? {} : { reward }),
    ...trainingOf(training?.line),
    replies: episode?.line.replies ?? (calls.at(-1)?.line.reply ?? -1) + 1,
    calls: episode?.line.calls ?? calls.reduce((sum, { line }) => sum + line.calls, 0),
    promptTokens: episode?.line.promptTokens ?? 0,
    sampledTokens: episode?.line.sampledTokens ?? 0,
    startedAt: first.startedAt,
    ms: episode?.line.ms ?? 0,
  }
}

function trainingOf(line: TrainingLine | undefined): Pick<EpisodeSummary, 'advantage' | 'trained'> {
  if (line === undefined) return {}
  return {
    ...(line.advantage === undefined ? {} : { advantage: line.advantage }),
    trained: line.untrained ?? true,
  }
}

/** In order of group, member, attempt. */
export function episodeSummaries(content: PlaceContent): readonly EpisodeSummary[] {
  return [...content.episodes]
    .map(([id, lines]) => episodeSummary(content.place, id, lines))
    .filter((summary) => summary !== undefined)
    .toSorted((a, b) => compareMembers(a.key, b.key))
}

function compareMembers(a: EpisodeKey, b: EpisodeKey): number {
  return a.group - b.group || a.member - b.member || a.attempt - b.attempt
}

/** Groups that are over, and those under way as far as their episodes tell. */
export function groupSummaries(content: PlaceContent): readonly GroupSummary[] {
  const { split, evaluation, step } = content.place
  const byGroup = new Map<number, EpisodeSummary[]>()
  for (const episode of episodeSummaries(content)) {
    const { group } = episode.key
    byGroup.set(group, [...(byGroup.get(group) ?? []), episode])
  }
  const numbers = new Set([...content.groups.keys(), ...byGroup.keys()])
  return [...numbers]
    .toSorted((a, b) => a - b)
    .map((group) => {
      const line = content.groups.get(group)?.line
      const episodes = byGroup.get(group) ?? []
      const members = new Map(episodes.map((episode) => [episode.key.member, episode]))
      const reward = meanReward([...members.values()].map((episode) => episode.reward))
      return {
        key: { split, ...(evaluation === undefined ? {} : { evaluation }), step, group },
        task: line?.task ?? episodes[0]?.task ?? '',
        members: line?.members ?? members.size,
        ...(line?.dropped === undefined ? {} : { dropped: line.dropped }),
        ...(reward === undefined ? {} : { reward }),
      }
    })
}

function meanReward(rewards: readonly (Reward | undefined)[]): number | undefined {
  const values = rewards.flatMap((reward) =>
    reward !== undefined && isRewarded(reward) ? [reward.reward] : [],
  )
  return values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length
}
