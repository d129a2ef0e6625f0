import type { LearnerOptions } from '@tiltyard/core'

import type {
  CheckpointOptions,
  KlOptions,
  PipelineOptions,
  PolicyLoss,
  Schedule,
  SupervisedSettings,
} from './options.ts'
import type { TrainingConfig } from './training.ts'

/** Options with every default filled in: what a run does and what its record says. */

export const defaultAdaptation = { rank: 32 } as const satisfies LearnerOptions['adaptation']
export const defaultSchedule: Schedule = { shape: 'constant' }
export const DEFAULT_EVERY = 20
export const DEFAULT_SLOTS = 64

export interface ResolvedPipeline extends Required<Omit<PipelineOptions, 'groupsPerStep'>> {
  readonly groupsPerStep: number | undefined
}

export function resolvePipeline(options: PipelineOptions = {}): ResolvedPipeline {
  const {
    maxStaleness = 0,
    substeps = 1,
    minibatches = 1,
    groupsPerStep,
    stale = 'replay',
  } = options
  return { maxStaleness, substeps, minibatches, groupsPerStep, stale }
}

/** Unclipped while each sample trains the very weights that drew it, clipped as soon as it may not. */
export function resolveLoss({
  loss,
  pipeline,
}: Pick<TrainingConfig, 'loss' | 'pipeline'>): PolicyLoss {
  if (loss !== undefined) return loss
  const { maxStaleness, substeps } = resolvePipeline(pipeline)
  return { name: maxStaleness === 0 && substeps === 1 ? 'importance_sampling' : 'ppo' }
}

export function resolveKl(kl: KlOptions): Required<KlOptions> {
  return { discount: 0, discountOver: 'positions', centered: true, ...kl }
}

export interface ResolvedCheckpoints {
  readonly every: number
  readonly rolling: number
  readonly atStart: boolean
  readonly ttlSeconds: number | undefined
  readonly rollingTtlSeconds: number | undefined
}

export function resolveCheckpoints(
  options: CheckpointOptions = {},
  atStartByDefault = false,
): ResolvedCheckpoints {
  return {
    every: options.every ?? DEFAULT_EVERY,
    rolling: options.rolling ?? 0,
    atStart: options.atStart ?? atStartByDefault,
    ttlSeconds: options.ttlSeconds,
    rollingTtlSeconds: options.rollingTtlSeconds,
  }
}

/** Steps of a supervised training. */
export function supervisedSteps({
  examples,
  batchSize,
  epochs = 1,
  steps,
}: Pick<SupervisedSettings, 'examples' | 'batchSize' | 'epochs' | 'steps'>): number {
  return steps ?? Math.ceil(examples.length / batchSize) * epochs
}
