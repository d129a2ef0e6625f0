import { ConfigError, type Mistake } from '@tiltyard/core'

import { resolvePipeline } from './defaults.ts'
import type { Evaluation } from './options.ts'
import type { TrainingConfig } from './training.ts'

/**
 * What no single key can tell: whether keys go together.
 * @throws ConfigError with every mistake.
 */
export function checkCombinations(config: TrainingConfig): void {
  const mistakes = [
    ...klMistakes(config),
    ...clipMistakes(config),
    ...evaluationMistakes(config.evaluations ?? []),
    ...endMistakes(config),
  ]
  if (mistakes.length > 0) throw new ConfigError('training', mistakes)
}

function klMistakes({ kl, pipeline }: TrainingConfig): readonly Mistake[] {
  if (kl === undefined || resolvePipeline(pipeline).minibatches === 1) return []
  return [
    {
      at: 'kl',
      message:
        'the pull towards a reference is centred over the tokens of a whole step, which minibatches do not wait for; set pipeline.minibatches to 1',
    },
  ]
}

function clipMistakes({ loss }: TrainingConfig): readonly Mistake[] {
  if (loss === undefined || !('clipLow' in loss || 'clipHigh' in loss)) return []
  const { clipLow = 0, clipHigh = Infinity } = loss
  if (clipLow <= clipHigh) return []
  return [
    {
      at: 'loss.clipLow',
      message: `the bounds of the ratio are ${clipLow} and ${clipHigh}; the lower one must not be higher`,
    },
  ]
}

function evaluationMistakes(evaluations: readonly Evaluation[]): readonly Mistake[] {
  const names = evaluations.map(({ name }) => name)
  return evaluations.flatMap((evaluation, index) => {
    const { name } = evaluation
    const isTwice = names.indexOf(name) < index
    const isEndless = 'dataset' in evaluation && evaluation.dataset.batches === undefined
    return [
      ...(isTwice
        ? [{ at: `evaluations.${index}.name`, message: `two evaluations are named "${name}"` }]
        : []),
      ...(isEndless
        ? [
            {
              at: `evaluations.${index}.dataset`,
              message: 'an evaluation is played whole, and this dataset has no end',
            },
          ]
        : []),
    ]
  })
}

function endMistakes({ steps, dataset }: TrainingConfig): readonly Mistake[] {
  if (steps !== undefined || dataset.batches !== undefined) return []
  return [
    { at: 'steps', message: `the dataset ${dataset.name} has no end; say how many steps to train` },
  ]
}
