import type { JsonObject, JsonValue } from '@tiltyard/core'

import {
  defaultAdaptation,
  defaultSchedule,
  DEFAULT_EVERY,
  DEFAULT_SLOTS,
  resolveCheckpoints,
  resolveKl,
  resolveLoss,
  resolvePipeline,
  supervisedSteps,
} from '../config/defaults.ts'
import type { Evaluation, OptimizerOptions, SupervisedSettings } from '../config/options.ts'
import type { SupervisedConfig, TrainingConfig, Whereabouts } from '../config/training.ts'

/** The effective configuration as a record keeps it: plain data with defaults filled in; objects by name and fingerprint. */
export function describeTraining(config: TrainingConfig): JsonObject {
  const { renderer, dataset, kl, advantages, warmStart } = config
  const pipeline = resolvePipeline(config.pipeline)
  return plain({
    ...describeWhereabouts(config),
    renderer: { name: renderer.name, fingerprint: renderer.fingerprint },
    dataset: { name: dataset.name, fingerprint: dataset.fingerprint, batches: dataset.batches },
    steps: config.steps ?? dataset.batches,
    limits: config.limits ?? {},
    sampling: { temperature: 1, ...config.sampling },
    allowTempered: config.allowTempered ?? false,
    rollout: { slots: DEFAULT_SLOTS, ...config.rollout },
    advantages: {
      baseline: 'mean',
      scale: 'none',
      length: 'sum',
      withoutTokens: 'leave_out',
      ...advantages,
    },
    keepConstantGroups: config.keepConstantGroups ?? false,
    maxSkippedSteps: config.maxSkippedSteps,
    kl: kl === undefined ? undefined : resolveKl(kl),
    loss: resolveLoss(config),
    optimizer: describeOptimizer(config.optimizer),
    pipeline,
    tokensPerCall: config.tokensPerCall,
    measureUpdate: config.measureUpdate ?? false,
    evaluations: (config.evaluations ?? []).map(describeEvaluation),
    evalEvery: config.evalEvery ?? DEFAULT_EVERY,
    checkpoints: resolveCheckpoints(config.checkpoints, pipeline.maxStaleness > 0),
    warmStart: warmStart === undefined ? undefined : describeSupervision(warmStart),
  }) as JsonObject
}

export function describeSupervised(config: SupervisedConfig): JsonObject {
  const { renderer } = config
  return plain({
    ...describeWhereabouts(config),
    renderer:
      renderer === undefined
        ? undefined
        : { name: renderer.name, fingerprint: renderer.fingerprint },
    ...describeSupervision(config),
  }) as JsonObject
}

function describeWhereabouts(config: Whereabouts): Readonly<Record<string, unknown>> {
  const { run, index, backend, model, adaptation = defaultAdaptation, from, seed = 0 } = config
  return { run, index: index.name, backend: backend.name, model, adaptation, from, seed }
}

function describeSupervision(settings: SupervisedSettings): Readonly<Record<string, unknown>> {
  return {
    examples: settings.examples.length,
    heldOut: settings.heldOut?.length ?? 0,
    batchSize: settings.batchSize,
    epochs: settings.epochs ?? 1,
    order: settings.order ?? 'shuffled',
    steps: supervisedSteps(settings),
    trainOn: settings.trainOn ?? 'all_assistant_messages',
    weighting: settings.weighting ?? 'example',
    optimizer: describeOptimizer(settings.optimizer),
    evalEvery: settings.evalEvery ?? DEFAULT_EVERY,
    tokensPerCall: settings.tokensPerCall,
    checkpoints: resolveCheckpoints(settings.checkpoints),
  }
}

function describeOptimizer(optimizer: OptimizerOptions): Readonly<Record<string, unknown>> {
  return { ...optimizer, schedule: optimizer.schedule ?? defaultSchedule }
}

function describeEvaluation(evaluation: Evaluation): Readonly<Record<string, unknown>> {
  const { name, every } = evaluation
  if (!('dataset' in evaluation)) return { name, every, custom: true }
  const { dataset, sampling, limits } = evaluation
  return {
    name,
    every,
    dataset: { name: dataset.name, fingerprint: dataset.fingerprint, batches: dataset.batches },
    sampling,
    limits,
  }
}

/** JSON without absent members; functions are named as such. */
function plain(value: unknown): JsonValue | undefined {
  if (typeof value === 'function') return '(function)'
  if (Array.isArray(value)) return value.map((item: unknown) => plain(item) ?? null)
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).flatMap(([key, member]) => {
      const described = plain(member)
      return described === undefined ? [] : [[key, described] as const]
    })
    return Object.fromEntries(members)
  }
  return value as JsonValue | undefined
}
