import type { Metrics } from '../report.ts'

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** `<name>_max`, `_min` and `_mean`; nothing when there are no values. */
export function spread(name: string, values: readonly number[]): Readonly<Record<string, number>> {
  if (values.length === 0) return {}
  return {
    [`${name}_max`]: values.reduce((most, value) => Math.max(most, value), -Infinity),
    [`${name}_min`]: values.reduce((least, value) => Math.min(least, value), Infinity),
    [`${name}_mean`]: mean(values),
  }
}

/** Makes numbers fit for JSON: one that is not finite becomes null, and `<name>:not_finite` is 1. Names come out sorted. */
export function finiteMetrics(values: Readonly<Record<string, number>>): Metrics {
  const metrics: Record<string, number | null> = {}
  for (const name of Object.keys(values).toSorted()) {
    const value = values[name]!
    metrics[name] = Number.isFinite(value) ? value : null
    if (!Number.isFinite(value)) metrics[`${name}:not_finite`] = 1
  }
  return metrics
}

/** Names of the metrics that were not finite. */
export function notFinite(metrics: Metrics): readonly string[] {
  return Object.keys(metrics).filter((name) => metrics[name] === null)
}

/**
 * A name from outside as a part of a metric's name: runs of anything but letters, digits, `_`, `.` and `-` become `_`, dots and
 * underscores at the ends go, nothing left is `unnamed`. `math/500 v2` gives `math_500_v2`.
 */
export function metricLabel(name: string): string {
  const label = name.replaceAll(/[^A-Za-z0-9_.-]+/g, '_').replaceAll(/^[._]+|[._]+$/g, '')
  return label === '' ? 'unnamed' : label
}

/**
 * Which of many to show: `shown` places, evenly spread over the ranks of the scores, lowest first. Scores `[0, 3, 1, 2, 5, 4]`,
 * 4 shown, give the places `[0, 2, 1, 4]`.
 */
export function evenRanks(scores: readonly number[], shown: number): readonly number[] {
  const ranked = scores
    .map((_, place) => place)
    .toSorted((a, b) => scores[a]! - scores[b]! || a - b)
  if (ranked.length <= shown) return ranked
  if (shown === 1) return ranked.slice(0, 1)
  return Array.from(
    { length: shown },
    (_, index) => ranked[Math.floor((index * (ranked.length - 1)) / (shown - 1))]!,
  )
}
