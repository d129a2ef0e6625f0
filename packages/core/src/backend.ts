import type { Contract } from './contract.ts'
import type { LossName } from './data.ts'
import type { Learner } from './learner.ts'
import type { Logger } from './logger.ts'
import type { Sampler } from './sampler.ts'

/** A saved state by its address, which only its backend reads. `training` has weights and optimizer, `sampling` weights only. */
export interface CheckpointRef {
  readonly path: string
  readonly kind: 'training' | 'sampling'
}

export interface CheckpointInfo extends CheckpointRef {
  readonly name: string
  /** Milliseconds since 1970, when known. */
  readonly createdAt?: number
  readonly bytes?: number
}

/** One of the files of which a checkpoint is made. */
export interface CheckpointFile {
  /** A plain name, in no folder. */
  readonly name: string
  readonly bytes: number
  /** Its content from the beginning, each time. */
  readonly read: () => AsyncIterable<Uint8Array>
}

export interface CheckpointStore {
  list(): Promise<readonly CheckpointInfo[]>
  exists(ref: CheckpointRef): Promise<boolean>
  /** Deleting what isn't there is no error. */
  delete(ref: CheckpointRef): Promise<void>
  /**
   * The files of a checkpoint, to take it elsewhere; adapters in PEFT's layout and whole models in Hugging Face's, where the backend
   * has such. Absent when it can't give them. @throws NotFoundError
   */
  files?(ref: CheckpointRef): Promise<readonly CheckpointFile[]>
}

export interface Lora {
  readonly rank: number
  /** Default: the backend's. */
  readonly alpha?: number
  /** Of the adapters' initial values. */
  readonly seed?: number
}

export interface LearnerOptions {
  /** A model that the backend describes. */
  readonly model: string
  readonly adaptation: 'full' | Lora
  /** Start from here instead of from the model. */
  readonly from?: CheckpointRef
  /** With `from`: whether the optimizer comes back too. Default true. */
  readonly optimizer?: boolean
}

/** What to sample from: a model as it is, or a checkpoint. */
export type SamplerRef = { readonly model: string } | { readonly checkpoint: CheckpointRef }

export interface ModelInfo {
  readonly name: string
  /** Longest prompt plus reply, in tokens. */
  readonly contextWindow: number
  readonly vocabularySize?: number
  readonly parameters?: number
}

export interface Capabilities {
  readonly models: readonly ModelInfo[]
  readonly losses: readonly LossName[]
  /** Whether a datum's mask reaches the loss. */
  readonly mask: boolean
  readonly images: boolean
  readonly topLogprobs: boolean
  /** Samples with a seed are the same again, whatever else runs. */
  readonly deterministic: boolean
  readonly adaptations: readonly ('full' | 'lora')[]
  /** What executes, for the record: library, version, threads. Same bytes are promised for the same executor only. */
  readonly executor: string
}

/** Makes samplers and learners. Nothing connects or starts before the first call. */
export interface Backend extends Contract<'backend/1'> {
  readonly name: string
  describe(): Promise<Capabilities>
  learner(options: LearnerOptions): Promise<Learner>
  sampler(ref: SamplerRef): Promise<Sampler>
  checkpoints(): CheckpointStore
  /**
   * From now on what is no error yet is told there: a service that is away, an account to be paid. One that was made with a logger
   * of its own keeps that. Absent where there is nothing to tell.
   */
  logTo?(logger: Logger): void
  /** Closes what it made, ends its workers and connections. Idempotent. */
  close(): Promise<void>
}
