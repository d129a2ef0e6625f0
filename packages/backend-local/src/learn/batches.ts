import type { LossName } from '@tiltyard/core'

import type { PackedData, Span } from './packed-data.ts'

/** Fewer common positions than this are not worth a graph of their own. */
const SHORTEST_PREFIX = 32

/**
 * How many leading positions all data share, inputs and targets, without any being trained: they are computed once for the
 * whole call. Zero for a single datum.
 */
export function sharedPrefix(data: PackedData, spans: readonly Span[], loss: LossName): number {
  const [first, ...others] = spans
  if (first === undefined || others.length === 0) return 0
  // Every datum keeps at least one position of its own.
  let limit = Math.min(...spans.map(({ length }) => length - 1))
  for (const { start } of others) {
    let same = 0
    while (
      same < limit &&
      data.tokens[first.start + same] === data.tokens[start + same] &&
      data.targets[first.start + same] === data.targets[start + same]
    ) {
      same += 1
    }
    limit = same
  }
  for (const { start } of spans) {
    let untrained = 0
    while (untrained < limit && !isTrained(data, start + untrained, loss)) untrained += 1
    limit = untrained
  }
  return limit < SHORTEST_PREFIX ? 0 : limit
}

/** Whether a loss has a slope at a position. `dro` pulls even where the advantage is zero. */
export function isTrained(
  { weights, advantages, mask }: PackedData,
  at: number,
  loss: LossName,
): boolean {
  if (mask !== undefined && mask[at] === 0) return false
  if (loss === 'dro') return true
  return (weights ?? advantages)![at] !== 0
}

/**
 * Data in batches of similar length, longest first, with at most `budget` positions each, padding included (one datum may
 * exceed it alone). Entries are indices; the order depends on the lengths alone.
 */
export function microBatches(
  lengths: readonly number[],
  budget: number,
): readonly (readonly number[])[] {
  const order = lengths.map((_, index) => index).sort((a, b) => lengths[b]! - lengths[a]! || a - b)
  const batches: number[][] = []
  let room = 0
  for (const index of order) {
    if (room < 1) {
      room = Math.max(1, Math.floor(budget / lengths[index]!))
      batches.push([])
    }
    batches.at(-1)!.push(index)
    room -= 1
  }
  return batches
}
