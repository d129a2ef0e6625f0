import type { CheckpointEvent } from '@tiltyard/core'

/** Numbers by name. Null: the number was not finite; `<name>:not_finite` is then 1. */
export type Metrics = Readonly<Record<string, number | null>>

/** Something that a person should look at. `code` is stable, `message` says the number and the likely reason. */
export interface Warning {
  readonly code:
    | 'all_groups_constant'
    | 'no_room'
    | 'replies_cut'
    | 'logprob_gap'
    | 'not_finite'
    | 'skipped_step'
    | 'cold_optimizer'
    | 'older_checkpoint'
    | 'other_executor'
  readonly message: string
}

/** Result of one evaluation of one policy. */
export interface EvaluationReport {
  readonly name: string
  /** Training steps that the evaluated weights have seen. */
  readonly step: number
  readonly values: Metrics
  readonly timing: Metrics
}

/** A group as it went into the step, or why it did not. */
export interface GroupReport {
  readonly task: string
  readonly tags: readonly string[]
  /** One number per member that has a reward, in member order. */
  readonly rewards: readonly number[]
  /** The advantages that were trained, before length scaling and KL; empty when the group was not trained. */
  readonly advantages: readonly number[]
  /** Why nothing of it was trained: one of `untrainedReasons`, or what rollout said. */
  readonly untrained?: string
}

/** One training step, announced after all that it reports was recorded. */
export interface StepReport {
  readonly run: string
  /** 0-based. The step's groups were trained into the weights `step + 1`. */
  readonly step: number
  /** Steps of the whole run, when known. */
  readonly steps?: number
  /** Optimizer steps made; 0 when the step had nothing to train. */
  readonly updates: number
  /** The same in every run with the same seed, on a deterministic backend with `maxStaleness` 0. */
  readonly values: Metrics
  /** Times (seconds), rates and lag. */
  readonly timing: Metrics
  readonly groups: readonly GroupReport[]
  /** Of the weights that the step began with. */
  readonly evaluations: readonly EvaluationReport[]
  /** Written after this step. */
  readonly checkpoint?: CheckpointEvent
  readonly warnings: readonly Warning[]
}

/** How a training ended. */
export interface TrainingResult {
  readonly run: string
  readonly end: 'completed' | 'interrupted'
  /** Steps done in all, those before a resume included. */
  readonly steps: number
  /** Batches of the dataset that were read; differs from `steps` with `groupsPerStep` only. */
  readonly batches: number
  /** Of the final weights; empty when the run did not come to its end. */
  readonly evaluations: readonly EvaluationReport[]
  /** The newest checkpoint; of a completed run the final one. */
  readonly checkpoint?: CheckpointEvent
}

/** One step of supervised training. */
export interface SupervisedReport {
  readonly run: string
  /** 0-based. */
  readonly step: number
  readonly steps: number
  readonly values: Metrics
  readonly timing: Metrics
  /** Of the weights before the step. */
  readonly evaluations: readonly EvaluationReport[]
  readonly checkpoint?: CheckpointEvent
  readonly warnings: readonly Warning[]
}

/** How a supervised training ended. */
export interface SupervisedResult {
  readonly run: string
  readonly end: 'completed' | 'interrupted'
  /** Steps done in all, those before a resume included. */
  readonly steps: number
  /** Of the final weights; empty when the run did not come to its end. */
  readonly evaluations: readonly EvaluationReport[]
  /** The newest checkpoint; of a completed run the final one. */
  readonly checkpoint?: CheckpointEvent
}
