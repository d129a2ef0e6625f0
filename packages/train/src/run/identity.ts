import { ConfigError, deriveSeed, type Mistake } from '@tiltyard/core'

import type { Change } from '../config/control.ts'
import { defaultAdaptation, resolveKl, resolveLoss } from '../config/defaults.ts'
import type { SupervisedExample } from '../config/options.ts'
import type { SupervisedConfig, TrainingConfig, Whereabouts } from '../config/training.ts'

/** What makes a run what it is. */
export type Fingerprints = Readonly<Record<Change, string>>

export function trainingFingerprints(config: TrainingConfig): Fingerprints {
  const { renderer, dataset, advantages = {}, kl, keepConstantGroups = false } = config
  return {
    model: modelIdentity(config),
    renderer: renderer.fingerprint,
    dataset: dataset.fingerprint,
    loss: stable({
      loss: resolveLoss(config),
      advantages,
      kl: kl === undefined ? undefined : resolveKl(kl),
      keepConstantGroups,
    }),
  }
}

export function supervisedFingerprints(config: SupervisedConfig): Fingerprints {
  return {
    model: modelIdentity(config),
    renderer: config.renderer?.fingerprint ?? 'none',
    dataset: examplesFingerprint(config.examples),
    loss: stable({ loss: 'cross_entropy', weighting: config.weighting ?? 'example' }),
  }
}

/** Number of the examples and a 32-bit hash of their content. */
function examplesFingerprint(examples: readonly SupervisedExample[]): string {
  let hash = 0
  for (const example of examples) {
    if ('conversation' in example) {
      hash = deriveSeed(hash, JSON.stringify(example))
      continue
    }
    for (const { chunks, weights } of example.rows) {
      for (const chunk of chunks)
        hash = deriveSeed(hash, chunk.type === 'tokens' ? chunk.ids.join() : chunk.data.join())
      hash = deriveSeed(hash, weights.join())
    }
  }
  return `${examples.length} examples, ${hash.toString(16).padStart(8, '0')}`
}

function modelIdentity({ model, adaptation = defaultAdaptation }: Whereabouts): string {
  return stable({ model, adaptation })
}

/** JSON with sorted keys, so that equal settings have equal texts. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}

/**
 * Refuses to go on with a run that is not the one that was begun.
 * @throws ConfigError naming each difference and how to allow it.
 */
export function checkIdentity(
  run: string,
  recorded: { readonly seed: number; readonly fingerprints: Readonly<Record<string, string>> },
  now: { readonly seed: number; readonly fingerprints: Fingerprints },
  allowed: readonly Change[],
): void {
  const mistakes: Mistake[] = []
  if (recorded.seed !== now.seed) {
    mistakes.push({
      at: 'seed',
      message: `the run was begun with ${recorded.seed}, now it is ${now.seed}; a run keeps its seed`,
    })
  }
  for (const [name, fingerprint] of Object.entries(now.fingerprints)) {
    const before = recorded.fingerprints[name]
    if (before === undefined || before === fingerprint || allowed.includes(name as Change)) continue
    mistakes.push({
      at: name,
      message: `the run was begun with ${before}, now it is ${fingerprint}; begin a new run, or allow the change with allowChanges: ["${name}"]`,
    })
  }
  if (mistakes.length > 0) throw new ConfigError(`run "${run}" can't go on`, mistakes)
}
