import type { CheckpointRef, Loss, Sample, TokenLogprob } from '@tiltyard/core'

import type { AdamSettings } from '../learn/adam.ts'
import type { PackedData } from '../learn/packed-data.ts'
import type { ScoredData, StepResult } from '../learn/trainer.ts'
import type { LoraShape } from '../model/adapters.ts'
import type { ResolvedModel } from '../options.ts'
import type { ExecutorName } from '../runtime/executor.ts'
import type { Drawing } from '../sample/choose.ts'

/** What the worker is started with. */
export interface WorkerSetup {
  readonly models: Readonly<Record<string, ResolvedModel>>
  readonly folder: string
  readonly executor: 'auto' | 'native' | 'web'
  readonly threads: number
  readonly microBatchTokens: number
  readonly maxRows: number
  readonly cacheBytes: number
  /** Bytes of each id, end to end, with where each begins; absent: no stop strings. */
  readonly spellings: { readonly bytes: Uint8Array; readonly starts: Int32Array } | undefined
}

export interface ScorePrompt {
  readonly sampler: number
  readonly prompt: Int32Array
  readonly shared: number
}

/** Requests by name with their arguments and results. Learner requests take effect in the order in which they are sent. */
export interface Requests {
  describe: {
    readonly in: undefined
    readonly out: {
      readonly name: ExecutorName
      readonly version: string
      readonly threads: number
    }
  }
  openLearner: {
    readonly in: {
      readonly learner: number
      readonly model: string
      readonly lora?: LoraShape
      readonly loraSeed: number
      readonly from?: CheckpointRef
      readonly optimizer: boolean
    }
    readonly out: { readonly steps: number }
  }
  forward: {
    readonly in: {
      readonly learner: number
      readonly data: PackedData
      readonly loss: Loss
      readonly backward: boolean
    }
    readonly out: ScoredData
  }
  step: {
    readonly in: {
      readonly learner: number
      readonly adam: AdamSettings & { readonly clipNorm: number }
      /** Failed forward-backwards that the caller knows of. */
      readonly knownFailures: number
    }
    readonly out: StepResult
  }
  save: {
    readonly in: { readonly learner: number; readonly name: string }
    readonly out: CheckpointRef
  }
  publish: {
    readonly in: { readonly learner: number; readonly sampler: number; readonly name?: string }
    readonly out: { readonly steps: number; readonly checkpoint?: CheckpointRef }
  }
  closeLearner: { readonly in: { readonly learner: number }; readonly out: undefined }
  openSampler: {
    readonly in: { readonly sampler: number; readonly model: string; readonly from?: CheckpointRef }
    readonly out: { readonly steps: number }
  }
  closeSampler: { readonly in: { readonly sampler: number }; readonly out: undefined }
  sample: {
    readonly in: ScorePrompt &
      Drawing & {
        readonly maxTokens: number
        readonly stopTokens: readonly number[]
        readonly stopStrings: readonly string[]
        readonly seeds: readonly number[]
        readonly streaming: boolean
      }
    readonly out: readonly Sample[]
  }
  logprobs: { readonly in: ScorePrompt; readonly out: Float32Array }
  topLogprobs: {
    readonly in: ScorePrompt & { readonly k: number }
    readonly out: readonly (readonly TokenLogprob[])[]
  }
}

export type RequestName = keyof Requests

export type ToWorker =
  | {
      readonly type: 'request'
      readonly id: number
      readonly name: RequestName
      readonly input: unknown
    }
  | { readonly type: 'cancel'; readonly id: number }

export type FromWorker =
  | { readonly type: 'result'; readonly id: number; readonly output: unknown }
  | { readonly type: 'error'; readonly id: number; readonly code: string; readonly message: string }
  | {
      readonly type: 'token'
      readonly id: number
      readonly index: number
      readonly token: number
      readonly logprob: number
    }
