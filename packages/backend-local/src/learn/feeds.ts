import { rotaryTables } from '../model/decoder.ts'
import { type ModelShape, queriesPerKey } from '../model/shape.ts'
import { type Feed, type Feeds, floats, wholes } from '../runtime/executor.ts'
import type { PackedData, Span } from './packed-data.ts'

/** Added to scores that must not count. Finite, so that a row without any key stays finite. */
export const MASKED = -1e9

/** Keys and values of a prefix, per layer, as `<layer>.key` and `<layer>.value`; `length` positions. */
export interface Prefix {
  readonly length: number
  readonly tensors: Readonly<Record<string, Float32Array>>
}

/** Rows of one graph call: parts of the packed data, padded on the right to the longest. */
export interface Rows {
  readonly spans: readonly Span[]
  readonly longest: number
}

export function rowsOf(spans: readonly Span[]): Rows {
  return { spans, longest: Math.max(...spans.map(({ length }) => length)) }
}

/** Makes the inputs that depend on shapes and tokens, not on weights. */
export interface FeedMaker {
  rows(data: PackedData, rows: Rows, prefix: Prefix | undefined): Feeds
  /** A per-token array of the data for the rows, `fill` where they are padded. */
  perToken(values: Float32Array | undefined, rows: Rows, fill: number): Feed
}

export function feedMaker(shape: ModelShape): FeedMaker {
  const { contextWindow, headSize, kvHeads, layers } = shape
  const group = queriesPerKey(shape)
  const half = headSize / 2
  const tables = rotaryTables(shape)
  const fixed: Feeds = {
    cos: floats(tables.cos, [contextWindow, half]),
    sin: floats(tables.sin, [contextWindow, half]),
    reverse: floats(tables.reverse, [contextWindow, half]),
  }
  return {
    rows(data, { spans, longest }, prefix) {
      const before = prefix?.length ?? 0
      const gather = (ids: Int32Array) => {
        const out = new BigInt64Array(spans.length * longest)
        spans.forEach(({ start, length }, row) => {
          for (let at = 0; at < length; at += 1) out[row * longest + at] = BigInt(ids[start + at]!)
        })
        return out
      }
      const prefixFeeds: Record<string, Feed> = {}
      for (let layer = 0; layer < layers; layer += 1) {
        for (const kind of ['key', 'value']) {
          const tensor = prefix?.tensors[`${layer}.${kind}`] ?? new Float32Array(0)
          prefixFeeds[`prefix.${layer}.${kind}`] = floats(tensor, [1, kvHeads, before, headSize])
        }
      }
      return {
        ...fixed,
        ...prefixFeeds,
        tokens: { data: gather(data.tokens), shape: [spans.length, longest] },
        targets: { data: gather(data.targets), shape: [spans.length * longest] },
        position: wholes([before]),
        rows: wholes([spans.length, 1, 1, 1]),
        lengths: wholes([before, longest]),
        mask: floats(causalMask(group, before, longest), [group * longest, before + longest]),
      }
    },
    perToken(values, { spans, longest }, fill) {
      const out = new Float32Array(spans.length * longest).fill(fill)
      spans.forEach(({ start, length }, row) => {
        if (values === undefined) return
        out.set(values.subarray(start, start + length), row * longest)
      })
      return floats(out, [out.length, 1])
    },
  }
}

/** Every position sees the prefix and itself and what came before; once for each query head of a group. */
function causalMask(group: number, before: number, length: number): Float32Array {
  const width = before + length
  const mask = new Float32Array(group * length * width)
  for (let row = 0; row < group * length; row += 1) {
    mask.fill(MASKED, row * width + before + (row % length) + 1, (row + 1) * width)
  }
  return mask
}
