import type { Datum, Loss } from '@tiltyard/core'

/** Data end to end in flat arrays, so that a batch crosses to the worker as a few buffers. */
export interface PackedData {
  readonly lengths: Int32Array
  readonly tokens: Int32Array
  readonly targets: Int32Array
  /** What the loss doesn't read is absent. */
  readonly weights?: Float32Array
  readonly recorded?: Float32Array
  readonly advantages?: Float32Array
  /** Absent: every token counts. */
  readonly mask?: Float32Array
}

/** One datum's place in the flat arrays. */
export interface Span {
  readonly start: number
  readonly length: number
}

export function packData(data: readonly Datum[], loss: Loss): PackedData {
  const join = (pick: (datum: Datum) => Float32Array | undefined, missing: number) => {
    const parts = data.map(
      (datum) => pick(datum) ?? new Float32Array(datum.targets.length).fill(missing),
    )
    return concat(Float32Array, parts)
  }
  const supervised = loss.name === 'cross_entropy'
  return {
    lengths: Int32Array.from(data, ({ targets }) => targets.length),
    tokens: concat(
      Int32Array,
      data.flatMap(({ input }) =>
        input.flatMap((chunk) => (chunk.type === 'tokens' ? [chunk.ids] : [])),
      ),
    ),
    targets: concat(
      Int32Array,
      data.map(({ targets }) => targets),
    ),
    ...(supervised
      ? { weights: join(({ weights }) => weights, 0) }
      : {
          recorded: join(({ logprobs }) => logprobs, 0),
          advantages: join(({ advantages }) => advantages, 0),
        }),
    ...(data.some(({ mask }) => mask !== undefined) ? { mask: join(({ mask }) => mask, 1) } : {}),
  }
}

export function spansOf({ lengths }: PackedData): readonly Span[] {
  let start = 0
  return Array.from(lengths, (length) => {
    const span = { start, length }
    start += length
    return span
  })
}

// Always a copy: the result's memory is handed to the worker.
function concat<T extends Int32Array | Float32Array>(
  kind: new (length: number) => T,
  parts: readonly T[],
): T {
  const whole = new kind(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
