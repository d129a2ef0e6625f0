import {
  checkOptions,
  type Backend,
  type CheckpointRef,
  type Contract,
  type Dataset,
  type Limits,
  type LearnerOptions,
  type Renderer,
  type RunIndex,
  type SamplingSettings,
} from '@tiltyard/core'
import { z } from 'zod'

import { checkCombinations } from './combinations.ts'
import type {
  AdvantageOptions,
  CheckpointOptions,
  Evaluation,
  KlOptions,
  OptimizerOptions,
  PipelineOptions,
  PolicyLoss,
  RolloutSettings,
  SupervisedSettings,
} from './options.ts'
import { supervisedKeys, trainingKeys, whereKeys } from './schema.ts'

/** Where a training runs and what it trains: shared by both kinds. */
export interface Whereabouts {
  /** Name of the run in its index. */
  readonly run: string
  readonly index: RunIndex
  readonly backend: Backend
  /** A model that the backend describes. */
  readonly model: string
  /** Default `{ rank: 32 }`. */
  readonly adaptation?: LearnerOptions['adaptation']
  /** Weights to start from, with a new optimizer. Ignored when the run resumes. */
  readonly from?: CheckpointRef
  /** Every random choice comes from it. Default 0. */
  readonly seed?: number
}

/** A reinforcement training in one object: what a recipe composes. */
export interface TrainingConfig extends Whereabouts {
  readonly renderer: Renderer
  readonly dataset: Dataset
  /** Default: as many as the dataset has batches. Needed when it is endless. */
  readonly steps?: number
  readonly limits?: Limits
  readonly rollout?: RolloutSettings
  /** Default: temperature 1, nothing truncated. */
  readonly sampling?: SamplingSettings
  /** Train on samples drawn with a temperature other than 1, top-k or top-p, though their log-probabilities are of the untempered policy. Default false: refused. */
  readonly allowTempered?: boolean
  readonly advantages?: AdvantageOptions
  /** Train groups whose rewards are all equal, with advantage 0. Default false. */
  readonly keepConstantGroups?: boolean
  /** So many steps in a row with nothing to train end the run with an error; it can go on later. Default: unlimited. */
  readonly maxSkippedSteps?: number
  readonly kl?: KlOptions
  /** Default `importance_sampling` on-policy, `ppo` when samples may be stale or a step has several updates. */
  readonly loss?: PolicyLoss
  readonly optimizer: OptimizerOptions
  readonly pipeline?: PipelineOptions
  /** Most tokens in one forward-backward call; a step's data is packed into as many calls as that takes. Default: unlimited. */
  readonly tokensPerCall?: number
  /** Score the step's sequences again with the new weights, for `kl_pre_post_v1/v2`. Default false. */
  readonly measureUpdate?: boolean
  readonly evaluations?: readonly Evaluation[]
  /** Steps between evaluations, counted from the untrained policy; the final weights are always evaluated. Default 20; 0: none at all. */
  readonly evalEvery?: number
  readonly checkpoints?: CheckpointOptions
  /** Supervised training before the first step. It is a run of its own, `<run>-warm-start`, and resumes like one. */
  readonly warmStart?: SupervisedSettings
}

/** What a recipe exports. */
export interface Training extends Contract<'training/1'> {
  readonly config: TrainingConfig
}

const schema = z.strictObject({ ...whereKeys, ...trainingKeys })

/**
 * Checks a training's configuration before anything is opened or sampled.
 * @throws ConfigError with every mistake; an unknown key names the nearest right one.
 */
export function defineTraining(config: TrainingConfig): Training {
  checkOptions('training', schema, config)
  checkCombinations(config)
  return { specVersion: 'training/1', config }
}

/** A supervised training in one object. */
export interface SupervisedConfig extends Whereabouts, SupervisedSettings {
  /** Needed when an example is a conversation. */
  readonly renderer?: Renderer
}

export interface SupervisedTraining extends Contract<'supervised-training/1'> {
  readonly config: SupervisedConfig
}

const supervisedSchema = z.strictObject({
  ...whereKeys,
  ...supervisedKeys,
  renderer: trainingKeys.renderer.optional(),
})

/** As `defineTraining`, for supervised training. @throws ConfigError */
export function defineSupervised(config: SupervisedConfig): SupervisedTraining {
  checkOptions('supervised training', supervisedSchema, config)
  return { specVersion: 'supervised-training/1', config }
}
