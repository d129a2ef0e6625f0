import type {
  AssistantMessage,
  PolicyVersion,
  RenderedPrompt,
  Sample,
  TokenLogprob,
} from '@tiltyard/core'

/** A finished reply of a call. */
export interface Choice {
  readonly index: number
  /** As it goes to the client. */
  readonly message: AssistantMessage
  readonly finish: 'stop' | 'length' | 'tool_calls'
  readonly sample: Sample
  /** The likeliest tokens at each sampled position, when asked for. */
  readonly alternatives?: readonly (readonly TokenLogprob[])[]
  /** Tokens of the reasoning, when they can be told apart. */
  readonly reasoningTokens: number
}

export interface CallResult {
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly version: PolicyVersion
  readonly prompt: RenderedPrompt
  readonly reused: number
  readonly choices: readonly Choice[]
}

/** What a stream is told as the reply grows. Calls come when the reply is whole: half a reply is never acted on. */
export type CallDelta =
  | { readonly type: 'text'; readonly choice: number; readonly text: string }
  | { readonly type: 'reasoning'; readonly choice: number; readonly text: string }
  | { readonly type: 'end'; readonly choice: number; readonly reply: Choice }

export function sampledTokens({ choices }: CallResult): number {
  return choices.reduce((sum, { sample }) => sum + sample.ids.length, 0)
}
