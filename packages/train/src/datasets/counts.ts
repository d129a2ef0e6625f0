import { ConfigError } from '@tiltyard/core'

/** @throws ConfigError for the numbers of a dataset that are given and no positive integers. */
export function checkCounts(
  dataset: string,
  counts: Readonly<Record<string, number | undefined>>,
): void {
  const mistakes = Object.entries(counts).flatMap(([at, value]) =>
    value === undefined || (Number.isInteger(value) && value >= 1)
      ? []
      : [{ at, message: `expected a whole number of at least 1, got ${value}` }],
  )
  if (mistakes.length > 0) throw new ConfigError(`dataset ${dataset}`, mistakes)
}
