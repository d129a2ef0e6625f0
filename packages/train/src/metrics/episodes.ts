import { endName, isRewarded, isScored } from '@tiltyard/core'
import type { PlayedEpisode, PlayedGroup } from '@tiltyard/rollout'

import { isConstant } from '../objective/advantages.ts'
import { mean, metricLabel } from './numbers.ts'

/**
 * What the played groups tell: `env/all/…` over all, and `env/<tag>/…` for each tag, when at least one tag tells some groups from
 * others. Rates are over episodes; each other mean is over the episodes that have the number. Tags whose labels are equal count as
 * one, and a tag `all` as none.
 */
export function episodeMetrics(groups: readonly PlayedGroup[]): Readonly<Record<string, number>> {
  const byLabel = new Map<string, PlayedGroup[]>()
  for (const group of groups) {
    for (const label of new Set(group.task.tags?.map(metricLabel))) {
      const labelled = byLabel.get(label) ?? []
      byLabel.set(label, labelled)
      labelled.push(group)
    }
  }
  byLabel.delete('all')
  const telling = [...byLabel.values()].some(({ length }) => length < groups.length)
  return {
    ...withPrefix('env/all/', metricsOf(groups)),
    ...Object.assign(
      {},
      ...(telling ? [...byLabel] : []).map(([label, labelled]) =>
        withPrefix(`env/${label}/`, metricsOf(labelled)),
      ),
    ),
  }
}

function metricsOf(groups: readonly PlayedGroup[]): Readonly<Record<string, number>> {
  const episodes = groups.flatMap((group) => group.episodes)
  return {
    ...playMetricsOf(episodes),
    ...scoreMetrics(episodes),
    ...countMetrics(episodes),
    ...endRates(episodes),
    ...rewardMetrics(episodes),
    ...groupMetrics(groups),
  }
}

function playMetricsOf(episodes: readonly PlayedEpisode[]): Readonly<Record<string, number>> {
  return meansByName(episodes.map(({ metrics }) => metrics))
}

function scoreMetrics(episodes: readonly PlayedEpisode[]): Readonly<Record<string, number>> {
  const outcomes = episodes.flatMap(({ outcome }) =>
    outcome === undefined ? [] : [outcome.scores],
  )
  const scored = outcomes.map((scores) =>
    Object.fromEntries(
      Object.entries(scores).flatMap(([step, score]) =>
        isScored(score) ? [[`score/${step}`, score.value]] : [],
      ),
    ),
  )
  const unscored: Record<string, number> = {}
  for (const [step, score] of outcomes.flatMap((scores) => Object.entries(scores))) {
    if (!isScored(score)) unscored[step] = (unscored[step] ?? 0) + 1
  }
  return {
    ...meansByName(scored),
    ...Object.fromEntries(
      Object.entries(unscored).map(([step, count]) => [
        `score/${step}/unscored_frac`,
        count / outcomes.length,
      ]),
    ),
  }
}

/** A prompt counts in full each time that it is sampled from. */
function countMetrics(episodes: readonly PlayedEpisode[]): Readonly<Record<string, number>> {
  const replies = episodes.flatMap((episode) => episode.replies)
  const sampled = replies.reduce((sum, { sample }) => sum + sample.ids.length, 0)
  const prompts = replies.reduce((sum, { prompt }) => sum + prompt.length, 0)
  const perReply = (tokens: number) => (replies.length === 0 ? 0 : tokens / replies.length)
  return {
    total_episodes: episodes.length,
    total_replies: replies.length,
    total_sampled_tokens: sampled,
    total_prompt_tokens: prompts,
    sampled_tokens_per_reply: perReply(sampled),
    prompt_tokens_per_reply: perReply(prompts),
    ...(episodes.length === 0 ? {} : { replies_per_episode: replies.length / episodes.length }),
  }
}

function endRates(episodes: readonly PlayedEpisode[]): Readonly<Record<string, number>> {
  if (episodes.length === 0) return {}
  const counts: Record<string, number> = { completed: 0 }
  for (const { end } of episodes) counts[endName(end)] = (counts[endName(end)] ?? 0) + 1
  return Object.fromEntries(
    Object.entries(counts).map(([end, count]) => [`stop/${end}`, count / episodes.length]),
  )
}

function rewardMetrics(episodes: readonly PlayedEpisode[]): Readonly<Record<string, number>> {
  if (episodes.length === 0) return {}
  const rewards = rewardsOf(episodes)
  const sum = rewards.reduce((total, reward) => total + reward, 0)
  return {
    ...(rewards.length === 0 ? {} : { 'reward/total': sum / rewards.length }),
    'reward/with_unscored_as_zero': sum / episodes.length,
    'reward/unscored_frac': 1 - rewards.length / episodes.length,
  }
}

/** `mixed`: rewards differ. Constant groups are all good from a reward of 0.5 on. Groups without a reward are left out. */
function groupMetrics(groups: readonly PlayedGroup[]): Readonly<Record<string, number>> {
  const rewards = groups
    .map(({ episodes }) => rewardsOf(episodes))
    .filter(({ length }) => length > 0)
  const share = (is: (group: readonly number[]) => boolean) =>
    rewards.length === 0 ? 0 : rewards.filter(is).length / rewards.length
  return {
    'by_group/frac_mixed': share((group) => !isConstant(group)),
    'by_group/frac_all_good': share((group) => isConstant(group) && group[0]! >= 0.5),
    'by_group/frac_all_bad': share((group) => isConstant(group) && group[0]! < 0.5),
  }
}

function rewardsOf(episodes: readonly PlayedEpisode[]): readonly number[] {
  return episodes.flatMap(({ reward }) => (isRewarded(reward) ? [reward.reward] : []))
}

function meansByName(
  records: readonly Readonly<Record<string, number>>[],
): Readonly<Record<string, number>> {
  const values = new Map<string, number[]>()
  for (const [name, value] of records.flatMap((record) => Object.entries(record))) {
    const known = values.get(name) ?? []
    values.set(name, known)
    known.push(value)
  }
  return Object.fromEntries([...values].map(([name, list]) => [name, mean(list)]))
}

function withPrefix(
  prefix: string,
  metrics: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [prefix + name, value]))
}
