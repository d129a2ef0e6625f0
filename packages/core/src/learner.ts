import type { CheckpointRef } from './backend.ts'
import type { Contract } from './contract.ts'
import type { Datum, Loss } from './data.ts'
import type { Sampler } from './sampler.ts'

/**
 * Takes data and a loss, accumulates gradients, steps the optimizer, saves weights. Calls take effect in the order in which
 * they are made, without waiting between them: forwardBackward, optimStep, publish may be called back to back.
 */
export interface Learner extends Contract<'learner/1'> {
  readonly model: string
  /** Optimizer steps made so far, those before a loaded checkpoint included; as of the last settled call. */
  readonly steps: number
  /** Loss and log-probabilities; changes nothing. */
  forward(data: readonly Datum[], loss: Loss): Promise<LossResult>
  /** Adds this data's gradient to those already there. Rejects, and adds nothing, when a datum is wrong or the gradient isn't finite. */
  forwardBackward(data: readonly Datum[], loss: Loss): Promise<LossResult>
  /**
   * One AdamW step with the accumulated gradients, which are then zero. Rejects, and changes nothing, when a forwardBackward fails
   * that was unanswered at this call: no step without its data. Whoever was told of the failure may step without it.
   */
  optimStep(adam: AdamParams): Promise<OptimResult>
  /** Weights and optimizer under a name, whole before it resolves. */
  save(name: string, options?: SaveOptions): Promise<CheckpointRef>
  /** A sampler of the weights of now. Named: a checkpoint that samplers can be opened from; unnamed: the fast path. */
  publish(options?: PublishOptions): Promise<Sampler>
  /** Idempotent. Samplers that were published live on until they are closed. */
  close(): Promise<void>
}

export interface LossResult {
  /** log-probability of each target under the weights, one array per datum, in order. */
  readonly logprobs: readonly Float32Array[]
  /** The loss, summed over tokens and data. */
  readonly loss: number
  /** What else the backend tells, by `name:reduction`. */
  readonly metrics: Readonly<Record<string, number>>
}

export interface AdamParams {
  readonly learningRate: number
  /** Default 0.9. */
  readonly beta1?: number
  /** Default 0.95. */
  readonly beta2?: number
  /** Default 1e-8. */
  readonly epsilon?: number
  /** Decoupled. Default 0. */
  readonly weightDecay?: number
  /** Largest global gradient norm. Default 0: no clipping. */
  readonly clipNorm?: number
}

export const adamDefaults = {
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  clipNorm: 0,
} as const

export interface OptimResult {
  /** For instance `grad_norm` before clipping. Names are the backend's. */
  readonly metrics: Readonly<Record<string, number>>
}

export interface SaveOptions {
  /** Seconds after which the service may delete it. Default: never. */
  readonly ttlSeconds?: number
}

export interface PublishOptions extends SaveOptions {
  readonly name?: string
  /** The trainer's step, for the sampler's version. Default: the learner's optimizer steps. */
  readonly step?: number
}
