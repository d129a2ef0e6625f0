import type { RunEvent, TrainingEvent } from '@tiltyard/core'
import { groupEvent, rolloutErrors, type PlayedEpisode, type PlayedGroup } from '@tiltyard/rollout'

import type { PolicyDatum } from '../data/assemble.ts'
import { BAD_DATA, type JudgedGroup } from '../data/prepare.ts'
import type { GroupReport } from '../report.ts'

/** A played group on its way to the learner. */
export interface TrainingGroup {
  readonly played: PlayedGroup
  readonly judged: JudgedGroup
}

/** An episode's data in a step. */
export interface EpisodeData {
  readonly episode: PlayedEpisode
  readonly advantage: number
  readonly data: readonly PolicyDatum[]
}

/** What becomes of a group, for its record: one event for it, one for each of its episodes. */
export function groupEvents(
  { played, judged }: TrainingGroup,
  step: number,
  trained: ReadonlyMap<PlayedEpisode, EpisodeData>,
  options: { readonly untrained?: string; readonly perToken: boolean },
): readonly RunEvent[] {
  const why = options.untrained ?? judged.untrained
  const episodes = judged.verdicts.map((verdict): TrainingEvent => {
    const { key } = verdict.episode
    const data = trained.get(verdict.episode)
    if (why !== undefined || data === undefined) {
      const untrained = why ?? ('untrained' in verdict ? verdict.untrained : 'unused')
      return { type: 'training', key, step, untrained, data: [] }
    }
    return {
      type: 'training',
      key,
      step,
      advantage: data.advantage,
      data: data.data.map((datum) => recordedDatum(datum, options.perToken)),
    }
  })
  return [groupEvent(played, why), ...episodes]
}

function recordedDatum(
  { index, sequence, trained, advantages }: PolicyDatum,
  perToken: boolean,
): TrainingEvent['data'][number] {
  const place = { sequence: index, length: sequence.length, trained }
  if (!perToken) return place
  // A target belongs to the position after its own.
  const byPosition = new Float32Array(sequence.length)
  byPosition.set(advantages, 1)
  return { ...place, advantages: byPosition }
}

export function groupReport({ played, judged }: TrainingGroup, untrained?: string): GroupReport {
  const why = untrained ?? judged.untrained
  const advantages = judged.verdicts.flatMap((verdict) =>
    'advantage' in verdict ? [verdict.advantage] : [],
  )
  return {
    task: played.task.id,
    tags: played.task.tags ?? [],
    rewards: played.episodes.flatMap(({ reward }) => ('reward' in reward ? [reward.reward] : [])),
    advantages: why === undefined ? advantages : [],
    ...(why === undefined ? {} : { untrained: why }),
  }
}

/** How many groups and episodes trained, and why others did not. */
export function groupCounts(
  groups: readonly TrainingGroup[],
  stale: number,
): Readonly<Record<string, number>> {
  const count = (is: (group: TrainingGroup) => boolean) => groups.filter(is).length
  const verdicts = groups.flatMap(({ judged }) => judged.verdicts)
  const because = (reason: string) =>
    verdicts.filter((verdict) => 'untrained' in verdict && verdict.untrained === reason).length
  return {
    'groups/played': groups.length,
    'groups/trained': count(({ judged }) => judged.untrained === undefined),
    'groups/constant': count(({ judged }) => judged.untrained === 'constant'),
    'groups/alone': count(({ judged }) => judged.untrained === 'alone'),
    'groups/dropped': count(({ played }) => played.dropped !== undefined),
    'groups/stale': stale,
    'episodes/trained': verdicts.filter((verdict) => 'advantage' in verdict).length,
    'episodes/unscored': because('unscored'),
    'episodes/no_tokens': because('no_tokens'),
    'episodes/bad_data': verdicts.filter(
      (verdict) => 'untrained' in verdict && verdict.untrained.startsWith(BAD_DATA),
    ).length,
    'rollout_errors/total': 0,
    ...rolloutErrors(groups.map(({ played }) => played)),
  }
}
