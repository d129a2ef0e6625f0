import {
  ConfigError,
  isRewarded,
  isScored,
  type CutReason,
  type EndReason,
  type Env,
  type Episode,
  type EpisodeOutcome,
  type GroupRewardRule,
  type Limits,
  type Reward,
  type RewardRule,
  type TaskSource,
} from '@tiltyard/core'

import type { FailurePolicy } from '../failure-policy.ts'
import type { MalformedPolicy } from '../options.ts'

/**
 * Opt-in: rewards as tinker-cookbook gives them, for those who compare runs with it. Without these Tiltyard scores a cut
 * episode as it stands and adds nothing.
 */

export interface CookbookRewardOptions {
  /** Added when prompt or reply did not fit: cut by `reply_tokens`, `episode_tokens` or `context_window`. Default −0.1. */
  readonly overflow?: number
  /** Added when the episode ended with a malformed reply. Default −0.1, as for tool environments; message environments take −1. */
  readonly failedParse?: number
  /** Subtracted for each malformed reply that the model was told of. Default 0. */
  readonly penaltyPerMalformed?: number
}

const overflowEnds: readonly CutReason[] = ['reply_tokens', 'episode_tokens', 'context_window']

/** Sum of all scores, plus what the end and the malformed replies cost. Without a score the costs alone are the reward. */
export function cookbookReward(options: CookbookRewardOptions = {}): RewardRule {
  const { overflow = -0.1, failedParse = -0.1, penaltyPerMalformed = 0 } = options
  return rule('cookbook', (outcome) => {
    const sum = scoreSum(outcome)
    if (!isRewarded(sum)) return sum
    const isMalformedEnd = isCutBy(outcome.end, ['malformed_reply'])
    const told = (outcome.metrics['malformed_replies'] ?? 0) - (isMalformedEnd ? 1 : 0)
    return {
      reward:
        sum.reward +
        (isCutBy(outcome.end, overflowEnds) ? overflow : 0) +
        (isMalformedEnd ? failedParse : 0) -
        penaltyPerMalformed * told,
    }
  })
}

export interface ProblemRewardOptions {
  /** Default 0.1. */
  readonly coefficient?: number
  /** Also refuse a format whose reply ended by the model's end-of-text instead of its stop token. Default true. */
  readonly strict?: boolean
}

/** coefficient · (format − 1) + correct, from the scores `format` and `correct`, each 0 or 1. */
export function cookbookProblemReward(options: ProblemRewardOptions = {}): RewardRule {
  const { coefficient = 0.1, strict = true } = options
  return rule('cookbook problem', ({ scores, metrics }) => {
    const { format, correct } = scores
    if (format === undefined || correct === undefined)
      return { unscored: 'needs the scores format and correct' }
    if (!isScored(format)) return format
    if (!isScored(correct)) return correct
    const isRightEnd = !strict || (metrics['eos_replies'] ?? 0) === 0
    return { reward: coefficient * ((isRightEnd ? format.value : 0) - 1) + correct.value }
  })
}

/** Ends whose positive rewards the cookbook sets to zero on request; the context window and malformed replies are not among them. */
const limitEnds: readonly CutReason[] = [
  'reply_tokens',
  'episode_tokens',
  'sampled_tokens',
  'turns',
  'replies',
  'tool_calls',
  'episode_time',
]

/** A rule whose positive rewards are zero for episodes that a limit ended. */
export function zeroOnLimit(inner: RewardRule): RewardRule {
  return rule(
    `${inner.name}, zero on limits`,
    (outcome) => {
      const given = inner.reward(outcome)
      const isZeroed = isRewarded(given) && given.reward > 0 && isCutBy(outcome.end, limitEnds)
      return isZeroed ? { reward: 0 } : given
    },
    (steps) => inner.check(steps),
  )
}

/** A group's rule that makes the total zero where own and group reward together are positive and a limit ended the episode. */
export function zeroTotalOnLimit(own: RewardRule, group: GroupRewardRule): GroupRewardRule {
  return {
    specVersion: 'group-reward-rule/1',
    name: `${group.name}, zero on limits`,
    check: (steps) => group.check(steps),
    rewards(outcomes) {
      return group.rewards(outcomes).map((given, index) => {
        const outcome = outcomes[index]!
        const before = own.reward(outcome)
        if (!isRewarded(given) || !isRewarded(before)) return given
        const isZeroed = before.reward + given.reward > 0 && isCutBy(outcome.end, limitEnds)
        return isZeroed ? { reward: -before.reward } : given
      })
    },
  }
}

/** A source whose episodes are not graded when they were cut for one of these reasons: their outcome has no score. */
export function withoutGrading(source: TaskSource, ends: readonly CutReason[]): TaskSource {
  return {
    ...source,
    tasks: (split) => source.tasks(split),
    prepare: (needs, signal) => source.prepare(needs, signal),
    async open(task, options) {
      return ungraded(await source.open(task, options), ends)
    },
    close: () => source.close(),
  }
}

function ungraded<Play extends Env | Episode>(play: Play, ends: readonly CutReason[]): Play {
  let end: EndReason = { kind: 'completed' }
  const inner: Env | Episode = play
  const replaced: Pick<Episode, 'end' | 'score' | 'judge'> = {
    async end(reason) {
      end = reason
      await inner.end(reason)
    },
    async score(signal) {
      return isCutBy(end, ends) ? { end, scores: {}, metrics: {} } : inner.score(signal)
    },
    ...(inner.judge === undefined
      ? {}
      : {
          judge: async (outcome, signal) =>
            isCutBy(end, ends) ? outcome : inner.judge!(outcome, signal),
        }),
  }
  // What isn't replaced keeps its own object as `this`.
  return new Proxy(play, {
    get(target, name) {
      if (name in replaced) return Reflect.get(replaced, name)
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** Limits and policies of the cookbook's preset for agents. */
export const cookbookAgentic: {
  readonly limits: Limits
  readonly malformed: MalformedPolicy
  readonly failures: FailurePolicy
} = {
  limits: { replies: 10, episodeTokens: 65_536, toolCalls: 30, verifierMs: 900_000 },
  malformed: { onMalformed: { tell: 2 } },
  failures: { kind: 'minGroup' },
}

/**
 * Pairs for judges that compare two members: all pairs within chunks of `chunk` members, as indices into the group. `both` gives
 * each pair in both orders.
 * @throws ConfigError when `chunk` is no positive integer.
 */
export function matchups(
  size: number,
  options: { readonly chunk?: number; readonly both?: boolean } = {},
): readonly (readonly [number, number])[] {
  const { chunk = 4, both = false } = options
  if (!Number.isInteger(chunk) || chunk < 1) {
    throw new ConfigError('matchups', [
      { at: 'chunk', message: `expected a whole number of at least 1, got ${chunk}` },
    ])
  }
  const pairs: (readonly [number, number])[] = []
  for (let start = 0; start < size; start += chunk) {
    const end = Math.min(start + chunk, size)
    for (let left = start; left < end; left += 1) {
      for (let right = both ? start : left + 1; right < end; right += 1)
        if (left !== right) pairs.push([left, right])
    }
  }
  return pairs
}

function rule(
  name: string,
  reward: (outcome: EpisodeOutcome) => Reward,
  check: (steps: readonly string[]) => void = () => {},
): RewardRule {
  return { specVersion: 'reward-rule/1', name, check, reward }
}

function scoreSum({ scores }: EpisodeOutcome): Reward {
  let sum = 0
  for (const score of Object.values(scores)) {
    if (!isScored(score)) return score
    sum += score.value
  }
  return { reward: sum }
}

function isCutBy(end: EndReason, reasons: readonly CutReason[]): boolean {
  return end.kind === 'cut' && reasons.includes(end.by)
}
