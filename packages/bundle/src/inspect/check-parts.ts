import type { JsonObject, JsonValue } from '@tiltyard/core'

import type { Bundle } from '../bundle.ts'
import type { Finding } from './report.ts'

/** What about the tools would leave a model or renderer guessing. */
export function toolFindings(bundle: Bundle): readonly Finding[] {
  return [...bundle.tools.values()].flatMap(({ spec }) => {
    const { name, description, parameters } = spec
    const findings: Finding[] = []
    if (description === undefined || description.trim() === '')
      findings.push({
        kind: 'tool-without-description',
        at: name,
        message: `the model is told nothing about "${name}" but its name`,
      })
    for (const [parameter, schema] of Object.entries(
      (parameters['properties'] ?? {}) as JsonObject,
    ))
      if (!hasType(schema))
        findings.push({
          kind: 'parameter-without-type',
          at: name,
          message: `"${parameter}" of "${name}" has no type; layouts that leave types to the schema will guess it`,
        })
    return findings
  })
}

const typingKeys = ['type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', '$ref']

function hasType(schema: JsonValue): boolean {
  return typeof schema === 'object' && schema !== null && typingKeys.some((key) => key in schema)
}

/** Evals that should share no task and do. Default pairs: names that begin with `train`, and those that begin as a held-out one would. */
export function overlapFindings(
  { evals, tasks }: Bundle,
  disjoint = defaultPairs([...evals.keys()]),
): readonly Finding[] {
  return disjoint.flatMap(([left, right]): readonly Finding[] => {
    const others = new Set(evals.get(right))
    const shared = (evals.get(left) ?? []).filter((id) => others.has(id))
    if (shared.length === 0) return []
    const message = `"${left}" and "${right}" share ${shared.length} of ${tasks.ids.length} tasks, the first is "${shared[0]!}"`
    return [{ kind: 'evals-overlap', at: right, message }]
  })
}

function defaultPairs(names: readonly string[]): readonly (readonly [string, string])[] {
  const held = names.filter((name) => /^(?:test|eval|valid|held|dev)/.test(name))
  return names
    .filter((name) => name.startsWith('train'))
    .flatMap((train) => held.map((name) => [train, name] as const))
}
