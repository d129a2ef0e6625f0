import type { ForwardBackwardOutput } from './forward-backward.ts'

/**
 * Joins the answers to the parts of one batch. A metric's name ends in how it is joined: `sum`, `min`, `max`, `mean` and `slack`
 * (weighted by data), `unique` (all values, numbered). Other kinds, and metrics that a part lacks, are left out.
 */
export function joinOutputs(parts: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const metrics: Record<string, number> = {}
  for (const key of Object.keys(parts[0]?.metrics ?? {})) {
    const values = parts.flatMap((part) => part.metrics[key] ?? [])
    if (values.length !== parts.length) continue
    const weights = parts.map(({ outputs }) => outputs.length)
    Object.assign(metrics, joined(key, values, weights))
  }
  return { outputs: parts.flatMap(({ outputs }) => outputs), metrics }
}

function joined(
  key: string,
  values: readonly number[],
  weights: readonly number[],
): Readonly<Record<string, number>> {
  switch (key.slice(key.indexOf(':') + 1)) {
    case 'sum':
      return { [key]: values.reduce((sum, value) => sum + value, 0) }
    case 'min':
      return { [key]: Math.min(...values) }
    case 'max':
      return { [key]: Math.max(...values) }
    case 'mean':
      return { [key]: mean(values, weights) }
    case 'slack':
      return { [key]: Math.max(...values) - mean(values, weights) }
    case 'unique':
      return Object.fromEntries(
        values.map((value, index) => [index === 0 ? key : `${key}_${index}`, value]),
      )
    default:
      return {}
  }
}

function mean(values: readonly number[], weights: readonly number[]): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return values.reduce((sum, value, index) => sum + value * weights[index]!, 0) / total
}
