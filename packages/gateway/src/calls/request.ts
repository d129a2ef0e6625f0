import type { Conversation } from '@tiltyard/core'

export type InferenceRoute = 'chat/completions' | 'responses' | 'completions'

/** What every dialect asks of a policy, in one form. */
export interface InferenceRequest {
  readonly route: InferenceRoute
  /** As the client named it; the reply repeats it. */
  readonly model: string
  readonly input: InferenceInput
  readonly n: number
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topK?: number
  /** 0: the likeliest token only. */
  readonly topP?: number
  /** Above 0. */
  readonly minP?: number
  readonly seed?: number
  /** Texts that end the reply and are no part of it. */
  readonly stop: readonly string[]
  /** False: what looks like a call is text. */
  readonly calls: boolean
  /** False: the reply ends after its first call. */
  readonly parallelCalls: boolean
  readonly stream: boolean
  /** log-probabilities of the sampled tokens, with so many likeliest alternatives; absent: none. */
  readonly logprobs?: number
  /** Whether ids of prompt and reply go out too. */
  readonly tokenIds: boolean
  /** Fields that are taken and have no effect. */
  readonly ignored: readonly string[]
}

export type InferenceInput =
  | { readonly kind: 'conversation'; readonly conversation: Conversation }
  /** Ids to go on from, as they are. */
  | { readonly kind: 'ids'; readonly ids: Int32Array }
  | { readonly kind: 'text'; readonly text: string }
