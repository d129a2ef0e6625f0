import type { ErrorSummary } from './errors.ts'

/** What a limit counts. The names are those of `Limits`, plus what isn't a number. */
export const cutReasons = [
  'reply_tokens',
  'episode_tokens',
  'sampled_tokens',
  'context_window',
  'turns',
  'replies',
  'tool_calls',
  'episode_time',
  'malformed_reply',
] as const

export type CutReason = (typeof cutReasons)[number]

/** Where an episode failed. */
export type FailurePhase =
  | 'open'
  | 'start'
  | 'render'
  | 'sample'
  | 'tool'
  | 'agent'
  | 'end'
  | 'score'
  | 'record'
  | 'close'

/**
 * Why an episode ended. `completed`: the task came to its end. `cut`: a limit, or a reply that can't be read; it is scored as
 * it stands. `failed`: environment, service or scorer broke; it has no score and never trains. `cancelled`: the run stopped it.
 */
export type EndReason =
  | { readonly kind: 'completed' }
  | { readonly kind: 'cut'; readonly by: CutReason }
  | { readonly kind: 'failed'; readonly phase: FailurePhase; readonly error: ErrorSummary }
  | { readonly kind: 'cancelled' }

/** The word for metrics and records: `completed`, the limit's name, `failed` or `cancelled`. */
export function endName(end: EndReason): string {
  return end.kind === 'cut' ? end.by : end.kind
}

/** Bounds of an episode. Absent: unbounded. All counts are at least 1, times are milliseconds. */
export interface Limits {
  /** Tokens sampled in one reply. Reaching it cuts the episode: half a reply is never acted on. */
  readonly replyTokens?: number
  /** Prompt plus sampled tokens of the conversation as it stands. */
  readonly episodeTokens?: number
  /** Tokens sampled in all replies. */
  readonly sampledTokens?: number
  /** Prompt plus reply; the sampler's own window bounds it too. */
  readonly contextWindow?: number
  /** User prompts. */
  readonly turns?: number
  /** Sampled replies. */
  readonly replies?: number
  /** Tool calls that run. */
  readonly toolCalls?: number
  /** Wall time from start to end, the score apart. */
  readonly episodeMs?: number
  /** Wall time of one tool call. */
  readonly toolMs?: number
  /** Wall time of one scoring. */
  readonly verifierMs?: number
}
