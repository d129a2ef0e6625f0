import { ConfigError, type PolicyHandle } from '@tiltyard/core'
import type { TrainingConfig } from '@tiltyard/train'

import { chooseSampler } from './eval.ts'

/** Which policies a person wants served: the first by flags of its own, others beside it. */
export interface ServedChoice {
  readonly run?: string
  readonly step?: number
  readonly model?: boolean
  /** `model`, a step, a run, or `<run>:<step>`. */
  readonly beside?: readonly string[]
}

export interface ServedPolicies {
  /** By the name under which clients ask for them; the first is `policy`. */
  readonly policies: Readonly<Record<string, PolicyHandle>>
  /** For people, what each name stands for. */
  readonly lines: readonly string[]
}

/** @throws NotFoundError for a version that isn't there, ConfigError for the same one twice. */
export async function servedPolicies(
  config: TrainingConfig,
  { beside = [], ...first }: ServedChoice,
): Promise<ServedPolicies> {
  const policies: Record<string, PolicyHandle> = {}
  const lines: string[] = []
  const named: readonly (readonly [string, Omit<ServedChoice, 'beside'>])[] = [
    ['policy', first],
    ...beside.map((which) => [aliasOf(which), versionOf(which, first.run)] as const),
  ]
  for (const [alias, choice] of named) {
    if (alias in policies)
      throw new ConfigError('serve gateway', [
        { at: '--beside', message: `"${alias}" is served already; name each version once` },
      ])
    const { of, what } = await chooseSampler(config, choice)
    const sampler = await config.backend.sampler(of)
    policies[alias] = { sampler, renderer: config.renderer, sampling: config.sampling ?? {} }
    lines.push(`${alias}: ${what}`)
  }
  return { policies, lines }
}

/** `which` names a version of the same run by its step alone. */
function versionOf(which: string, run: string | undefined): Omit<ServedChoice, 'beside'> {
  const ofRun = run === undefined ? {} : { run }
  if (which === 'model') return { ...ofRun, model: true }
  if (/^\d+$/.test(which)) return { ...ofRun, step: Number(which) }
  const [, other, step] = /^(.*):(\d+)$/.exec(which) ?? []
  return other === undefined ? { run: which } : { run: other, step: Number(step) }
}

/** A name that clients can send, of letters that never need quoting. */
function aliasOf(which: string): string {
  const text = /^\d+$/.test(which) ? `step-${which}` : which.replace(/:(\d+)$/, '-step-$1')
  return text.replaceAll(/[^\w.-]/g, '-')
}
