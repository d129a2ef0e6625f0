import type { PlayedGroup } from '@tiltyard/rollout'

import type { Metrics, Warning } from '../report.ts'
import { notFinite } from './numbers.ts'

/** What a step looked like, for its warnings. */
export interface StepFacts {
  readonly step: number
  readonly groups: readonly PlayedGroup[]
  /** Groups whose rewards were all equal. */
  readonly constant: number
  /** Groups that trained. */
  readonly trained: number
  readonly updates: number
  readonly values: Metrics
  /** Whether the step's samples were drawn by the very weights that it trains first, with one update. */
  readonly onPolicy: boolean
}

/** Share of cut replies from which on a step warns. */
const CUT_SHARE = 0.5
/** Mean |q − p| in nats from which on a step warns. On one machine the two agree to 1e-4, across engines to about 0.02. */
const GAP_NATS = 0.1

/** What a person should look at after a step: each says the number and the likely reason. */
export function stepWarnings(facts: StepFacts): readonly Warning[] {
  return [
    ...constantGroups(facts),
    ...noRoom(facts),
    ...cutReplies(facts),
    ...logprobGaps(facts),
    ...brokenNumbers(facts),
    ...skipped(facts),
  ]
}

function constantGroups({ groups, constant }: StepFacts): readonly Warning[] {
  if (groups.length === 0 || constant < groups.length) return []
  const good = groups.some(({ episodes }) =>
    episodes.some(({ reward }) => 'reward' in reward && reward.reward > 0),
  )
  const reason = good
    ? 'the tasks are too easy for the policy, or the reward rule gives everybody the same'
    : 'nothing earned a reward: the tasks are too hard for the policy, replies are cut, or the reward rule is wrong'
  const all = groups.length === 1 ? 'the only group has' : `all ${groups.length} groups have`
  return [
    {
      code: 'all_groups_constant',
      message: `${all} constant rewards, so the step has no gradient; likely ${reason}`,
    },
  ]
}

function noRoom({ groups }: StepFacts): readonly Warning[] {
  const episodes = groups.flatMap((group) => group.episodes)
  const unplayed = episodes.filter(({ end, replies }) => end.kind === 'cut' && replies.length === 0)
  const [first] = unplayed
  if (first?.end.kind !== 'cut') return []
  return [
    {
      code: 'no_room',
      message: `${unplayed.length} of ${episodes.length} episodes were cut (${first.end.by}) before their first reply, for instance of task ${first.task.id}; likely the task is longer than the context window or limits.episodeTokens allows`,
    },
  ]
}

function cutReplies({ groups }: StepFacts): readonly Warning[] {
  const replies = groups.flatMap(({ episodes }) => episodes.flatMap((episode) => episode.replies))
  const cut = replies.filter(({ sample }) => sample.stop === 'length').length
  if (cut <= CUT_SHARE * replies.length) return []
  const longest = replies.reduce((most, { sample }) => Math.max(most, sample.ids.length), 0)
  return [
    {
      code: 'replies_cut',
      message: `${cut} of ${replies.length} replies were cut by a token limit (the longest has ${longest} tokens); likely limits.replyTokens is too low for the task`,
    },
  ]
}

function logprobGaps({ values, onPolicy }: StepFacts): readonly Warning[] {
  const gap = values['optim/logprob_diff_mean']
  if (!onPolicy || typeof gap !== 'number' || gap <= GAP_NATS) return []
  return [
    {
      code: 'logprob_gap',
      message: `sampler and learner differ by ${gap.toPrecision(3)} nats per token for the same weights; likely a temperature, a template or a precision differs between them`,
    },
  ]
}

function brokenNumbers({ values }: StepFacts): readonly Warning[] {
  const names = notFinite(values)
  if (names.length === 0) return []
  return [{ code: 'not_finite', message: `not finite: ${names.join(', ')}` }]
}

function skipped({ updates, groups, trained }: StepFacts): readonly Warning[] {
  if (updates > 0) return []
  return [
    {
      code: 'skipped_step',
      message: `nothing to train in this step (${groups.length} groups played, ${trained} to learn from); the weights stay as they are`,
    },
  ]
}
