import type { CheckpointRef } from './backend.ts'
import type { Contract } from './contract.ts'
import type { RenderedPrompt } from './tokens.ts'

/** Which weights sampled a token. `id` is unique in a backend; `step` is the trainer's step that published them. */
export interface PolicyVersion {
  readonly id: string
  readonly step: number
}

/** What ends a reply. The token that stops is part of the sample; a stop string's text is too. */
export interface StopCondition {
  readonly tokens: readonly number[]
  readonly strings: readonly string[]
}

/** Why sampling ended: a stop token or string, or the token limit. */
export type StopReason = 'stop' | 'length'

export interface SampleRequest {
  readonly prompt: RenderedPrompt
  /** Most tokens to sample, at least 1. */
  readonly maxTokens: number
  /** How many replies to the same prompt. Default 1. */
  readonly n?: number
  readonly stop?: StopCondition
  /** Default 1. 0 takes the likeliest token. */
  readonly temperature?: number
  /** Only the k likeliest tokens. Default: all. */
  readonly topK?: number
  /** Only the likeliest tokens that together reach this probability. Default 1. */
  readonly topP?: number
  /** One seed per sample (uint32). With them the result depends on the request alone. Default: the backend's choice. */
  readonly seeds?: readonly number[]
  /** Called as tokens of sample `index` arrive, in order; a backend that can't stream calls it once. */
  readonly onTokens?: (index: number, ids: Int32Array, logprobs: Float32Array) => void
}

export interface Sample {
  /** Sampled ids, the stop token included. Never empty unless the request was cut by a stop before any token. */
  readonly ids: Int32Array
  /** log-probability of each id, in nats, under the untempered, untruncated distribution. */
  readonly logprobs: Float32Array
  readonly stop: StopReason
}

export interface WaitOptions {
  readonly signal?: AbortSignal
}

/** Gives tokens with log-probabilities under one fixed policy version. Safe to call concurrently. */
export interface Sampler extends Contract<'sampler/1'> {
  readonly version: PolicyVersion
  /** Where its weights are kept, when it was published by name or opened from a checkpoint. */
  readonly checkpoint?: CheckpointRef
  /** Longest prompt plus reply, in tokens. */
  readonly contextWindow: number
  /** `n` samples in order. Rejects with the signal's reason within a token or so when it is aborted. */
  sample(request: SampleRequest, options?: WaitOptions): Promise<readonly Sample[]>
  /**
   * log-probability of each position of the prompt given those before it, in nats; always untempered and untruncated.
   * Entry 0, and positions of images, are NaN: nothing predicts them.
   */
  logprobs(prompt: RenderedPrompt, options?: WaitOptions): Promise<Float32Array>
  /** The k likeliest tokens at each position of the prompt; entry 0 is empty. Absent when the backend can't. */
  topLogprobs?(
    prompt: RenderedPrompt,
    k: number,
    options?: WaitOptions,
  ): Promise<readonly (readonly TokenLogprob[])[]>
  /** Frees what the version holds. Calls under way finish; later ones are refused. Idempotent. */
  close(): Promise<void>
}

export interface TokenLogprob {
  readonly id: number
  readonly logprob: number
}
