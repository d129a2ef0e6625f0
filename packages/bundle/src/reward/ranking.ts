import {
  type EpisodeOutcome,
  type GroupRewardRule,
  isRewarded,
  type Reward,
  type RewardRule,
} from '@tiltyard/core'

/**
 * Rewards by rank within the group: 1 for the best, 0 for the worst, evenly between; equal ones share the mean of their
 * ranks. Unscored members stay unscored and don't count; a single rewarded member, or a group of equals, gets 0.5 each.
 */
export function ranking(rule: RewardRule): GroupRewardRule {
  return {
    specVersion: 'group-reward-rule/1',
    name: `rank of ${rule.name}`,
    check: (steps) => rule.check(steps),
    rewards(outcomes: readonly EpisodeOutcome[]): readonly Reward[] {
      const rewards = outcomes.map((outcome) => rule.reward(outcome))
      const values = rewards.filter(isRewarded).map(({ reward }) => reward)
      return rewards.map((reward) =>
        isRewarded(reward) ? { reward: rankOf(reward.reward, values) } : reward,
      )
    },
  }
}

/** Share of the others that `value` beats; a tie counts half. */
function rankOf(value: number, values: readonly number[]): number {
  if (values.length < 2) return 0.5
  const below = values.filter((other) => other < value).length
  const equal = values.filter((other) => other === value).length - 1
  return (below + equal / 2) / (values.length - 1)
}
