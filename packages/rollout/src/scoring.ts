import {
  ConfigError,
  isRewarded,
  isScored,
  TiltyardError,
  type EndReason,
  type EpisodeOutcome,
  type GroupRewardRule,
  type Reward,
  type RewardRule,
  type Score,
} from '@tiltyard/core'

import type { Alarms } from './alarms.ts'
import type { CancelSignal } from './cancellation.ts'
import { settle } from './settle.ts'

export interface ScoringOptions {
  readonly attempts: number
  /** Longest time of one attempt, in milliseconds. */
  readonly milliseconds: number
  readonly graceMs: number
  readonly cancelMs: number
  readonly signal: CancelSignal | undefined
  readonly alarms: Alarms
}

/** An outcome, or why there is none: the scorer's last error. `cancelled`: the signal came first. */
export type Scoring =
  | { readonly kind: 'scored'; readonly outcome: EpisodeOutcome }
  | { readonly kind: 'unscored'; readonly error: unknown }
  | { readonly kind: 'cancelled' }

/** Asks a scorer, again when it fails, unless its set-up is wrong. */
export async function askScorer(
  score: (signal: AbortSignal) => Promise<EpisodeOutcome>,
  options: ScoringOptions,
): Promise<Scoring> {
  const { attempts, milliseconds, graceMs, cancelMs, signal, alarms } = options
  let error: unknown
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const waitingFor = 'the score of an episode'
    const stop = new AbortController()
    const result = await settle(() => score(stop.signal), {
      waitingFor,
      milliseconds,
      graceMs,
      cancelMs,
      signal,
      stop,
      alarms,
    })
    if (result.kind === 'done') return { kind: 'scored', outcome: result.value }
    if (result.kind === 'late' && result.cause === 'signal') return { kind: 'cancelled' }
    error = result.error
    if (TiltyardError.is(error, 'CONFIG')) break
    // What was left behind may still use what the next attempt would use.
    if (result.kind === 'late' && result.end.kind === 'leftBehind') break
  }
  return { kind: 'unscored', error }
}

/** The outcome as it may be used: the end that the play had, finite numbers only, the play's own numbers added. */
export function soundOutcome(
  outcome: EpisodeOutcome,
  end: EndReason,
  playMetrics: Readonly<Record<string, number>>,
): EpisodeOutcome {
  return {
    end,
    scores: soundScores(outcome.scores),
    metrics: withFinite(playMetrics, outcome.metrics),
  }
}

function soundScore(score: Score): Score {
  if (!isScored(score) || Number.isFinite(score.value)) return score
  return { unscored: `the verifier gave ${score.value}` }
}

function withFinite(
  own: Readonly<Record<string, number>>,
  added: Readonly<Record<string, number>>,
): Record<string, number> {
  const all = { ...own }
  for (const name of Object.keys(added)) if (Number.isFinite(added[name])) all[name] = added[name]!
  return all
}

function soundScores(scores: Readonly<Record<string, Score>>): Readonly<Record<string, Score>> {
  // Most outcomes have nothing to repair, and are used as they are.
  if (Object.values(scores).every((score) => soundScore(score) === score)) return scores
  return Object.fromEntries(
    Object.entries(scores).map(([name, score]) => [name, soundScore(score)]),
  )
}

/** The rule's reward of one outcome; a rule that fails or gives no finite number leaves the episode unscored. */
export function rewardOf(rule: RewardRule, outcome: EpisodeOutcome): Reward {
  return guarded(rule.name, () => soundReward(rule.name, rule.reward(outcome)))
}

/**
 * Own rewards plus those of the group's rule, in member order. An episode with no outcome, or without one of the two, is unscored.
 * @throws ConfigError when the rule gives another number of rewards than there are outcomes.
 */
export function withGroupRewards(
  rule: GroupRewardRule,
  members: readonly { readonly outcome?: EpisodeOutcome; readonly reward: Reward }[],
): readonly Reward[] {
  const outcomes = members.flatMap(({ outcome }) => (outcome === undefined ? [] : [outcome]))
  if (outcomes.length === 0) return members.map(({ reward }) => reward)
  let given: readonly Reward[]
  try {
    given = rule.rewards(outcomes)
  } catch (error) {
    if (TiltyardError.is(error, 'CONFIG')) throw error
    given = outcomes.map(() => failedRule(rule.name, error))
  }
  if (given.length !== outcomes.length) {
    throw new ConfigError(`group reward rule ${rule.name}`, [
      { at: '', message: `gave ${given.length} rewards for ${outcomes.length} outcomes` },
    ])
  }
  let next = 0
  return members.map(({ outcome, reward }) => {
    if (outcome === undefined) return reward
    const ofGroup = soundReward(rule.name, given[next]!)
    next += 1
    if (!isRewarded(reward)) return reward
    if (!isRewarded(ofGroup)) return ofGroup
    return { reward: reward.reward + ofGroup.reward }
  })
}

function guarded(name: string, work: () => Reward): Reward {
  try {
    return work()
  } catch (error) {
    if (TiltyardError.is(error, 'CONFIG')) throw error
    return failedRule(name, error)
  }
}

function failedRule(name: string, error: unknown): Reward {
  const why = error instanceof Error ? error.message : String(error)
  return { unscored: `reward rule ${name} failed: ${why}` }
}

function soundReward(name: string, reward: Reward): Reward {
  if (!isRewarded(reward) || Number.isFinite(reward.reward)) return reward
  return { unscored: `reward rule ${name} gave ${reward.reward}` }
}
