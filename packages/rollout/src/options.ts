import type {
  Clock,
  EpisodeKey,
  Limits,
  Logger,
  Message,
  PlayedReply,
  PolicyHandle,
  RunWriter,
  TaskRef,
  UserMessage,
} from '@tiltyard/core'

import type { FailurePolicy, RetryBudget } from './failure-policy.ts'
import type { AttemptFailure, PlayedEpisode, PlayedGroup } from './played.ts'
import type { Slots } from './slots.ts'

/** A policy in use. `release` is called once, when the episode that took it is over. */
export interface PolicyLease {
  readonly policy: PolicyHandle
  release(): void
}

/** A fixed policy, or what gives the policy of now: called when an episode begins, which then keeps what it got. */
export type PolicySource = PolicyHandle | (() => PolicyLease)

/** What becomes of a reply whose call markup can't be read. A reply that also holds readable calls is acted on and counted. */
export interface MalformedPolicy {
  /** `end` cuts the episode. `tell` answers with a user message and goes on, at most so many times in a row. Default `end`. */
  readonly onMalformed?: 'end' | { readonly tell: number; readonly message?: string }
  /** Whether the ids of malformed replies are trained. Default true. */
  readonly train?: boolean
}

/** Longest waits for parts that are not the episode's own time, in milliseconds. */
export interface Waits {
  /** Opening a play. Default 300,000. */
  readonly openMs?: number
  /** One reply. Default 600,000. */
  readonly replyMs?: number
  /** One step of an environment, all its tool calls together. Default 1,800,000. */
  readonly stepMs?: number
  /** One scoring, where `limits.verifierMs` says nothing. Default 600,000. */
  readonly scoreMs?: number
  /** `end`, and `close`. Default 30,000 each. */
  readonly endMs?: number
  /** What code gets to stop after its deadline. Default 10,000. */
  readonly graceMs?: number
  /** What playing, ending, closing and each of their records get after a cancellation. Default 300: 2 s in all. */
  readonly cancelMs?: number
}

/** What a hook sees before a reply is sampled. */
export interface ReplyOccasion {
  readonly messages: readonly Message[]
  /** Replies sampled so far. */
  readonly replies: number
  /** User prompts so far. */
  readonly turns: number
  readonly signal: AbortSignal
}

/** Code of the run that takes part in the play. What it throws fails the episode. */
export interface PlayHooks {
  /** User messages to add to the conversation before the next reply; they are recorded and the policy sees them. */
  readonly beforeReply?: (
    occasion: ReplyOccasion,
  ) => readonly UserMessage[] | Promise<readonly UserMessage[]>
}

/** What an observer is told. */
export type RolloutEvent =
  | { readonly type: 'start'; readonly key: EpisodeKey; readonly task: TaskRef }
  | { readonly type: 'reply'; readonly key: EpisodeKey; readonly reply: PlayedReply }
  | { readonly type: 'episode'; readonly episode: PlayedEpisode }
  | { readonly type: 'failure'; readonly failure: AttemptFailure; readonly retried: boolean }
  | { readonly type: 'cancelled'; readonly key: EpisodeKey }
  | { readonly type: 'group'; readonly group: PlayedGroup }
  /** Something that came after its episode's end, or did not stop in time; it was ignored. */
  | { readonly type: 'late'; readonly key: EpisodeKey; readonly what: string }

/** How an Env is played: the options of `envEpisode`. */
export interface PlayOptions {
  readonly malformed?: MalformedPolicy
  /** What a renderer without images does with one: refuse the task, or show `[image content]` and count it. Default `refuse`. */
  readonly images?: 'refuse' | 'placeholder'
  /** A reply that could have fewer tokens than this is not sampled; the episode is cut. Default 2. */
  readonly minReplyTokens?: number
  readonly hooks?: PlayHooks
  readonly waits?: Waits
  readonly clock?: Clock
}

export interface RolloutOptions extends PlayOptions {
  /** Of the run. Every seed of a play derives from it and the episode's place: see `episodeSeed`. */
  readonly seed: number
  readonly policy: PolicySource
  /** Shared by everything that plays in the run. */
  readonly slots: Slots
  readonly limits?: Limits
  /** Default `{ kind: 'retry', retries: 3 }`. */
  readonly failures?: FailurePolicy
  /** Retries in all groups together. Default: unlimited. */
  readonly retryBudget?: RetryBudget
  /** How often a failing scorer is asked, at least 1. Default 2. */
  readonly scoreAttempts?: number
  /** Bounds the verifiers that need the record only, which run after the slot is free. Default: unbounded. */
  readonly judgeSlots?: Slots
  /** Takes the records. Default: nothing is recorded. */
  readonly writer?: RunWriter
  /** Whether `playGroup` records the group's event; false leaves it to a caller that knows more (`groupEvent`). Default true. */
  readonly recordGroup?: boolean
  /** Told of what happens. What it throws is logged and ignored. */
  readonly observer?: (event: RolloutEvent) => void
  readonly logger?: Logger
  /** Milliseconds since 1970, for records. Default `Date.now`. */
  readonly wallClock?: () => number
  /** Cancels: every episode ends and is cleaned up within 2 s, then the call rejects with the signal's reason. */
  readonly signal?: AbortSignal
}
