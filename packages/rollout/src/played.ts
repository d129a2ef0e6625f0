import type {
  EndReason,
  EpisodeKey,
  EpisodeOutcome,
  ErrorSummary,
  FailurePhase,
  GroupKey,
  PlayedReply,
  Reward,
  TaskRef,
} from '@tiltyard/core'

/**
 * Something that failed on the way. In the phases `score` and `close` the episode itself stands (unscored in the first case);
 * in all others the attempt was played again or given up.
 */
export interface AttemptFailure {
  readonly key: EpisodeKey
  readonly phase: FailurePhase
  readonly error: ErrorSummary
}

/** An episode after its end: `completed` or `cut`. Failed and cancelled ones are no members of a played group. */
export interface PlayedEpisode {
  readonly key: EpisodeKey
  readonly task: TaskRef
  readonly end: EndReason
  /** Absent when scoring failed. */
  readonly outcome?: EpisodeOutcome
  /** By the plan's rules; `unscored` when a rule, a verifier or a number was no good. */
  readonly reward: Reward
  readonly replies: readonly PlayedReply[]
  /** Plain numbers about the play, those of the outcome among them; always finite. Names: `playMetrics`. */
  readonly metrics: Readonly<Record<string, number>>
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Wall time from start to end, the score apart, in milliseconds. */
  readonly ms: number
}

/** A group after its play: the members that ended as completed or cut, in member order, and what failed on the way. */
export interface PlayedGroup {
  readonly key: GroupKey
  readonly task: TaskRef
  /** Members that were asked for. */
  readonly size: number
  readonly episodes: readonly PlayedEpisode[]
  readonly failures: readonly AttemptFailure[]
  /** Why the group can't be used; absent when it can. */
  readonly dropped?: string
  readonly ms: number
}
