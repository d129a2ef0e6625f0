import { endName } from '@tiltyard/core'

import type { PlayedGroup } from './played.ts'

/**
 * Numbers about groups that were played. Rates and means are over episodes, so that 3 of 4 is 0.75:
 * - `stop/<end>`: share of the episodes that ended so (`completed`, or the limit's name)
 * - `score/<step>`: mean over the episodes that have that score
 * - `<metric>`: mean over the episodes that have that metric, those of `playMetrics` and of the outcomes
 * - `unscored`: share of the episodes without a reward
 * - `rollout_errors/…`: see `rolloutErrors`
 */
export function rolloutMetrics(groups: Iterable<PlayedGroup>): Readonly<Record<string, number>> {
  const played = [...groups]
  const means = new Map<string, { sum: number; count: number }>()
  const ends = new Map<string, number>()
  let episodes = 0
  const mean = (name: string, value: number) => {
    const entry = means.get(name) ?? { sum: 0, count: 0 }
    entry.sum += value
    entry.count += 1
    means.set(name, entry)
  }
  for (const group of played) {
    for (const { end, outcome, reward, metrics } of group.episodes) {
      episodes += 1
      ends.set(endName(end), (ends.get(endName(end)) ?? 0) + 1)
      mean('unscored', 'unscored' in reward ? 1 : 0)
      for (const [name, value] of Object.entries(metrics)) mean(name, value)
      for (const [step, score] of Object.entries(outcome?.scores ?? {}))
        if ('value' in score) mean(`score/${step}`, score.value)
    }
  }
  return {
    ...Object.fromEntries([...ends].map(([end, ended]) => [`stop/${end}`, ended / episodes])),
    ...Object.fromEntries([...means].map(([name, { sum, count: n }]) => [name, sum / n])),
    ...rolloutErrors(played),
  }
}

/**
 * What failed in groups that were played, as counts, absent while they are zero:
 * - `rollout_errors/<class>`, `rollout_errors/total`: what failed, retried or not, by the class of the error
 * - `rollout_errors/retries`: attempts beyond the first, also of members that failed for good
 * - `rollout_errors/groups_skipped`: groups that were dropped
 */
export function rolloutErrors(groups: Iterable<PlayedGroup>): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  const count = (name: string, amount = 1) => {
    if (amount > 0) counts.set(name, (counts.get(name) ?? 0) + amount)
  }
  for (const group of groups) {
    if (group.dropped !== undefined) count('rollout_errors/groups_skipped')
    for (const { error } of group.failures) {
      count(`rollout_errors/${error.name}`)
      count('rollout_errors/total')
    }
    count('rollout_errors/retries', retriesIn(group))
  }
  return Object.fromEntries(counts)
}

function retriesIn({ episodes, failures }: PlayedGroup): number {
  const attempts = new Map<number, number>()
  for (const { key } of [...episodes, ...failures])
    attempts.set(key.member, Math.max(key.attempt, attempts.get(key.member) ?? 0))
  return [...attempts.values()].reduce((sum, attempt) => sum + attempt, 0)
}
