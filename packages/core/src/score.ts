import type { Contract } from './contract.ts'
import type { EndReason } from './end.ts'

/** What a verifier gave, a finite number; or why there is none. Unscored is never zero. */
export type Score =
  | { readonly value: number; readonly note?: string }
  | { readonly unscored: string }

export function isScored(
  score: Score,
): score is { readonly value: number; readonly note?: string } {
  return 'value' in score
}

/** What is known of an ended episode: the scores under their steps' names, and plain numbers about its play. */
export interface EpisodeOutcome {
  readonly end: EndReason
  readonly scores: Readonly<Record<string, Score>>
  /** For instance `messages`, `tool_calls`, `tool_errors`. Averaged over episodes. */
  readonly metrics: Readonly<Record<string, number>>
}

export type Reward = { readonly reward: number } | { readonly unscored: string }

export function isRewarded(reward: Reward): reward is { readonly reward: number } {
  return 'reward' in reward
}

/** Turns an episode's scores into the one number that trains, or says that there is none. Pure. */
export interface RewardRule extends Contract<'reward-rule/1'> {
  readonly name: string
  /**
   * Called before anything is played, with the scoring steps that the task records.
   * @throws ConfigError that lists the steps when the rule can't decide between them or names one that doesn't exist.
   */
  check(steps: readonly string[]): void
  reward(outcome: EpisodeOutcome): Reward
}

/** Rewards that compare the members of a group, in member order. */
export interface GroupRewardRule extends Contract<'group-reward-rule/1'> {
  readonly name: string
  check(steps: readonly string[]): void
  rewards(outcomes: readonly EpisodeOutcome[]): readonly Reward[]
}
