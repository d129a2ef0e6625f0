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

/** An attempt at an episode that failed and was played again or given up. */
export interface AttemptFailure {
  readonly key: EpisodeKey
  readonly phase: FailurePhase
  readonly error: ErrorSummary
}

/** An episode after its end. Only `completed` and `cut` ones have an outcome. */
export interface PlayedEpisode {
  readonly key: EpisodeKey
  readonly task: TaskRef
  readonly end: EndReason
  readonly outcome?: EpisodeOutcome
  readonly reward: Reward
  readonly replies: readonly PlayedReply[]
  /** Wall time from start to end, in milliseconds. */
  readonly ms: number
}

/** A group after its play: the members that have an outcome, in member order, and what failed on the way. */
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
