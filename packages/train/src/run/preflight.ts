import {
  ConfigError,
  unknownName,
  type Capabilities,
  type Loss,
  type Mistake,
  type SamplingSettings,
} from '@tiltyard/core'

import { defaultAdaptation, resolveLoss, resolvePipeline } from '../config/defaults.ts'
import type { TrainingConfig, Whereabouts } from '../config/training.ts'

/**
 * Holds a configuration against what its backend can do, before anything is claimed or sampled.
 * @throws ConfigError with every mistake.
 */
export function checkAgainstBackend(config: TrainingConfig, capabilities: Capabilities): void {
  const loss = resolveLoss(config)
  const mistakes = [
    ...modelMistakes(config, capabilities),
    ...lossMistakes(loss, capabilities),
    ...samplingMistakes(config.sampling ?? {}, config.allowTempered === true),
  ]
  if (mistakes.length > 0) throw new ConfigError('training', mistakes)
}

export function checkModel(config: Whereabouts, capabilities: Capabilities): void {
  const mistakes = [
    ...modelMistakes(config, capabilities),
    ...lossMistakes({ name: 'cross_entropy' }, capabilities),
  ]
  if (mistakes.length > 0) throw new ConfigError('supervised training', mistakes)
}

function modelMistakes(
  { model, adaptation = defaultAdaptation, backend }: Whereabouts,
  { models, adaptations }: Capabilities,
): readonly Mistake[] {
  const names = models.map(({ name }) => name)
  const kind = adaptation === 'full' ? 'full' : 'lora'
  return [
    ...(names.includes(model)
      ? []
      : [{ at: 'model', message: unknownName('model', model, names) }]),
    ...(adaptations.includes(kind)
      ? []
      : [
          {
            at: 'adaptation',
            message: `${backend.name} trains ${adaptations.join(' and ')}, not ${kind}`,
          },
        ]),
  ]
}

function lossMistakes(loss: Loss, { losses, mask }: Capabilities): readonly Mistake[] {
  if (!losses.includes(loss.name))
    return [{ at: 'loss.name', message: unknownName('loss', loss.name, losses) }]
  if (loss.name !== 'dro' || mask) return []
  return [
    {
      at: 'loss.name',
      message:
        'dro pulls every token towards its sampled log-probability, prompts and observations too where the backend takes no mask, as this one; use ppo or cispo',
    },
  ]
}

function samplingMistakes(
  { temperature = 1, topK, topP = 1 }: SamplingSettings,
  allowed: boolean,
): readonly Mistake[] {
  if (allowed || (temperature === 1 && topK === undefined && topP === 1)) return []
  return [
    {
      at: 'sampling',
      message:
        'samples that train are drawn with temperature 1 and nothing cut off, since their log-probabilities are those of the whole distribution; set allowTempered to train them all the same',
    },
  ]
}

/** Steps of the run, when they are known before it. */
export function stepsOf({ steps, dataset, pipeline }: TrainingConfig): number | undefined {
  // How many steps the groups of a dataset make is known only when they were played.
  if (resolvePipeline(pipeline).groupsPerStep !== undefined) return steps
  return Math.min(steps ?? Infinity, dataset.batches ?? Infinity)
}

/**
 * Streaming sends parts of equal size, so the first batch must divide into them; a shorter batch later on is split as evenly as it goes.
 * @throws ConfigError
 */
export function checkDivides(groups: number, config: TrainingConfig): void {
  const { substeps, minibatches, groupsPerStep } = resolvePipeline(config.pipeline)
  const size = groupsPerStep ?? groups
  if (minibatches === 1 || size % (substeps * minibatches) === 0) return
  throw new ConfigError('training', [
    {
      at: 'pipeline.minibatches',
      message: `a step of ${size} groups does not divide into ${substeps} substeps of ${minibatches} minibatches`,
    },
  ])
}
