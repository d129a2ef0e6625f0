import { isRewarded } from '@tiltyard/core'
import type { PlayedEpisode, PlayedGroup } from '@tiltyard/rollout'

import type { AdvantageOptions } from '../config/options.ts'
import { groupAdvantages, isConstant } from '../objective/advantages.ts'

/**
 * Why an episode that was played does not train. `constant`: its group's rewards are all equal. `alone`: its group has no second
 * reward to compare. `unscored`: it has no reward. `no_tokens`: nothing that it sampled may be trained. `stale`: weights sampled
 * it that are too old by now. `unused`: the run ended before its group's turn. A dropped group, and bad data, say what happened.
 */
export const untrainedReasons = [
  'constant',
  'alone',
  'unscored',
  'no_tokens',
  'stale',
  'unused',
] as const

export type Untrained = (typeof untrainedReasons)[number]

/** Begins the reason of an episode whose tokens break a rule of training data; what was wrong follows. */
export const BAD_DATA = 'bad data: '

/** What training makes of an episode: an advantage, or the reason for none. */
export type Verdict =
  | { readonly episode: PlayedEpisode; readonly advantage: number }
  /** The reason is one of `Untrained`, or what was wrong with the data or the group. */
  | { readonly episode: PlayedEpisode; readonly untrained: string }

export interface JudgedGroup {
  readonly group: PlayedGroup
  readonly verdicts: readonly Verdict[]
  /** Why nothing of it trains; absent when something does. */
  readonly untrained?: string
}

export interface JudgeOptions extends AdvantageOptions {
  readonly keepConstantGroups?: boolean | undefined
}

/**
 * Advantages of a group, or why it has none. Each episode enters the baseline once, whatever number of data it becomes. Who is
 * left out of it, and never trains: unscored episodes, those with a reward that is not finite, with data that breaks a rule, and
 * (unless `withoutTokens` is `keep`) those without a token to train.
 */
export function judgeGroup(group: PlayedGroup, options: JudgeOptions = {}): JudgedGroup {
  const all = (untrained: string): JudgedGroup => ({
    group,
    untrained,
    verdicts: group.episodes.map((episode) => ({ episode, untrained })),
  })
  if (group.dropped !== undefined) return all(group.dropped)
  const faults = new Map(group.episodes.map((episode) => [episode, faultOf(episode)]))
  const isMember = (episode: PlayedEpisode) => {
    const fault = faults.get(episode)
    return fault === undefined || (fault === 'no_tokens' && options.withoutTokens === 'keep')
  }
  const members = group.episodes.filter(isMember)
  const rewards = members.map(({ reward }) => (isRewarded(reward) ? reward.reward : 0))
  const needsOthers = (options.baseline ?? 'mean') !== 'none' || options.scale === 'std'
  const untrained =
    members.length === 0
      ? sharedFault([...faults.values()])
      : reasonAgainst(rewards, needsOthers, options.keepConstantGroups === true)
  const advantages = groupAdvantages(rewards, options)
  const verdicts = group.episodes.map((episode): Verdict => {
    const reason = faults.get(episode) ?? untrained
    if (reason !== undefined) return { episode, untrained: reason }
    return { episode, advantage: advantages[members.indexOf(episode)]! }
  })
  const trains = verdicts.some((verdict) => 'advantage' in verdict)
  return { group, verdicts, ...(trains ? {} : { untrained: untrained ?? 'no_tokens' }) }
}

function reasonAgainst(
  rewards: readonly number[],
  needsOthers: boolean,
  keepConstant: boolean,
): Untrained | undefined {
  if (keepConstant || !needsOthers) return undefined
  if (rewards.length === 1) return 'alone'
  return isConstant(rewards) ? 'constant' : undefined
}

/** Why a group has no member: what keeps all of its episodes out, if it is one thing. */
function sharedFault(faults: readonly (string | undefined)[]): string {
  const [first = 'unscored', ...others] = new Set(faults)
  return others.length === 0 ? first : 'no_tokens'
}

/** What keeps an episode out of training, whatever its siblings did. */
function faultOf({ reward, replies }: PlayedEpisode): string | undefined {
  if (!isRewarded(reward)) return 'unscored'
  if (!Number.isFinite(reward.reward)) return 'unscored'
  for (const [index, { sample }] of replies.entries()) {
    const { ids, logprobs } = sample
    if (ids.length !== logprobs.length)
      return `${BAD_DATA}reply ${index} has ${ids.length} ids and ${logprobs.length} log-probabilities`
    const bad = logprobs.findIndex((logprob) => !Number.isFinite(logprob))
    if (bad !== -1) return `${BAD_DATA}log-probability ${bad} of reply ${index} is ${logprobs[bad]}`
  }
  const trainable = replies.some(
    ({ trained, sample, prompt }) => trained && sample.ids.length > (prompt.length === 0 ? 1 : 0),
  )
  return trainable ? undefined : 'no_tokens'
}
