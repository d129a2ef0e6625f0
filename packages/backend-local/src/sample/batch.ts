import { MASKED } from '../learn/feeds.ts'
import { type ModelShape, queriesPerKey } from '../model/shape.ts'
import { type Feed, type Feeds, floats, type Results, wholes } from '../runtime/executor.ts'
import { BLOCK } from './graph.ts'

/** Keys and values of a sequence at rest, [layers, key|value, KV, length, d]. */
export interface SequenceCache {
  readonly length: number
  readonly data: Float32Array
}

/** Tokens to append to one sequence; at most what its unfinished block has room for. */
export type Fresh = ArrayLike<number>

/** Sequences that are extended together, with their keys and values laid out for the graph. */
export interface Batch<Row> {
  readonly rows: readonly Row[]
  length(index: number): number
  /** `cache` may be longer than `length`: its first positions are taken. */
  add(row: Row, cache?: SequenceCache, length?: number): void
  /** The last sequence takes the place of the removed one. */
  remove(index: number): void
  save(index: number): SequenceCache
  /** Inputs of the graph for appending `fresh[i]` to sequence i, with `offset` positions before all of them. */
  feeds(fresh: readonly Fresh[], offset: number): Feeds
  /** Takes the new keys and values over. */
  append(fresh: readonly Fresh[], results: Results): void
}

/** Closed blocks are laid out in steps of so many positions, so that growing is rare. */
const CLOSED_STEP = 2 * BLOCK

export function createBatch<Row>(shape: ModelShape): Batch<Row> {
  const { layers, kvHeads, headSize } = shape
  const group = queriesPerKey(shape)
  const names = Array.from({ length: layers }, (_, layer) => [
    `${layer}.key`,
    `${layer}.value`,
  ]).flat()
  const rows: Row[] = []
  const lengths: number[] = []
  let capacity = 0
  let width = CLOSED_STEP
  let tails = new Map<string, Float32Array>()
  let closed = new Map<string, Float32Array>()
  let closedMask = new Float32Array(0)

  const closedLength = (index: number) => lengths[index]! - (lengths[index]! % BLOCK)
  const tailAt = (index: number, head: number) => (index * kvHeads + head) * BLOCK * headSize
  const closedAt = (index: number, head: number) => (index * kvHeads + head) * width * headSize

  const resize = (newCapacity: number, newWidth: number) => {
    const grown = new Map(
      names.map((name) => [name, new Float32Array(newCapacity * kvHeads * newWidth * headSize)]),
    )
    const grownTails = new Map(
      names.map((name) => [name, new Float32Array(newCapacity * kvHeads * BLOCK * headSize)]),
    )
    const size = kvHeads * BLOCK * headSize
    for (const name of names) {
      for (let index = 0; index < rows.length; index += 1) {
        for (let head = 0; head < kvHeads; head += 1) {
          const from = closedAt(index, head)
          const kept = closed.get(name)!.subarray(from, from + closedLength(index) * headSize)
          grown.get(name)!.set(kept, (index * kvHeads + head) * newWidth * headSize)
        }
      }
      grownTails.get(name)!.set(tails.get(name)?.subarray(0, rows.length * size) ?? [])
    }
    capacity = newCapacity
    width = newWidth
    closed = grown
    tails = grownTails
    closedMask = new Float32Array(capacity * width)
    rows.forEach((_, index) => maskRow(index))
  }
  const maskRow = (index: number) => {
    const start = index * width
    closedMask.fill(0, start, start + closedLength(index))
    closedMask.fill(MASKED, start + closedLength(index), start + width)
  }
  const ensure = (count: number, closedPositions: number) => {
    const newCapacity = count <= capacity ? capacity : Math.max(8, 2 ** Math.ceil(Math.log2(count)))
    const newWidth =
      closedPositions <= width ? width : Math.ceil(closedPositions / CLOSED_STEP) * CLOSED_STEP
    if (newCapacity !== capacity || newWidth !== width) resize(newCapacity, newWidth)
  }
  /** Every run of a sequence's keys or values: its closed and its unfinished part, and where it begins in a cache of `stride` positions. */
  const eachRun = (
    index: number,
    stride: number,
    visit: (closedPart: Float32Array, tailPart: Float32Array, start: number) => void,
  ) => {
    names.forEach((name, nth) => {
      for (let head = 0; head < kvHeads; head += 1) {
        visit(
          closed.get(name)!.subarray(closedAt(index, head), closedAt(index, head + 1)),
          tails.get(name)!.subarray(tailAt(index, head), tailAt(index, head + 1)),
          (nth * kvHeads + head) * stride * headSize,
        )
      }
    })
  }

  return {
    rows,
    length: (index) => lengths[index]!,
    add(row, cache, length = cache?.length ?? 0) {
      const index = rows.length
      ensure(index + 1, length - (length % BLOCK))
      rows.push(row)
      lengths.push(length)
      const whole = closedLength(index) * headSize
      eachRun(index, cache?.length ?? 0, (closedPart, tailPart, start) => {
        // A tail must be zero where it is empty; new keys are added onto it. What lies behind closed blocks is masked.
        tailPart.fill(0)
        if (cache === undefined) return
        closedPart.set(cache.data.subarray(start, start + whole))
        tailPart.set(cache.data.subarray(start + whole, start + length * headSize))
      })
      maskRow(index)
    },
    remove(index) {
      const last = rows.length - 1
      if (index !== last) {
        for (const name of names) {
          closed.get(name)!.copyWithin(closedAt(index, 0), closedAt(last, 0), closedAt(last + 1, 0))
          tails.get(name)!.copyWithin(tailAt(index, 0), tailAt(last, 0), tailAt(last + 1, 0))
        }
        rows[index] = rows[last]!
        lengths[index] = lengths[last]!
        maskRow(index)
      }
      rows.pop()
      lengths.pop()
    },
    save(index) {
      const length = lengths[index]!
      const data = new Float32Array(names.length * kvHeads * length * headSize)
      const whole = closedLength(index) * headSize
      eachRun(index, length, (closedPart, tailPart, start) => {
        data.set(closedPart.subarray(0, whole), start)
        data.set(tailPart.subarray(0, length * headSize - whole), start + whole)
      })
      return { length, data }
    },
    feeds(fresh, offset) {
      // A product of one row takes another path through the runtime and rounds differently, so two sequences are the least.
      const count = Math.max(2, rows.length)
      const longest = Math.max(...fresh.map(({ length }) => length))
      const tokens = new BigInt64Array(count * longest)
      const positions = new BigInt64Array(count * longest)
      const place = new Float32Array(count * BLOCK * longest)
      const tailMask = new Float32Array(count * group * longest * BLOCK)
      for (let index = 0; index < count; index += 1) {
        const added = fresh[index] ?? []
        const length = lengths[index] ?? 0
        const filled = length % BLOCK
        for (let at = 0; at < longest; at += 1) {
          const real = at < added.length
          tokens[index * longest + at] = BigInt(real ? added[at]! : 0)
          positions[index * longest + at] = BigInt(real ? offset + length + at : 0)
          if (real) place[(index * BLOCK + filled + at) * longest + at] = 1
          for (let query = 0; query < group; query += 1) {
            const row = (index * group + query) * longest + at
            tailMask.fill(MASKED, row * BLOCK + Math.min(filled + at + 1, BLOCK), (row + 1) * BLOCK)
          }
        }
      }
      const stored: Record<string, Feed> = {}
      for (const name of names) {
        stored[`tail.${name}`] = floats(tails.get(name)!.subarray(0, tailAt(count, 0)), [
          count,
          kvHeads,
          BLOCK,
          headSize,
        ])
        stored[`closed.${name}`] = floats(closed.get(name)!.subarray(0, closedAt(count, 0)), [
          count,
          kvHeads,
          width,
          headSize,
        ])
      }
      const queries = group * longest
      return {
        ...stored,
        tokens: { data: tokens, shape: [count, longest] },
        positions: { data: positions, shape: [count, longest] },
        place: floats(place, [count, 1, BLOCK, longest]),
        tail_mask: floats(tailMask, [count, 1, queries, BLOCK]),
        closed_mask: floats(closedMask.subarray(0, count * width), [count, 1, 1, width]),
        ...(offset === 0
          ? { split: wholes([BLOCK, width]) }
          : {
              split: wholes([offset, BLOCK, width]),
              score_shape: wholes([kvHeads, count, queries, offset]),
              share_shape: wholes([kvHeads, count * queries, offset]),
              query_shape: wholes([kvHeads, count, queries, headSize]),
            }),
      }
    },
    append(fresh, results) {
      const longest = Math.max(...fresh.map(({ length }) => length))
      const finished: number[] = []
      fresh.forEach(({ length }, index) => {
        if (length > 0 && (lengths[index]! + length) % BLOCK === 0) finished.push(index)
      })
      for (const name of names) {
        const tail = tails.get(name)!
        const added = results[`new.${name}`]!
        fresh.forEach(({ length }, index) => {
          const filled = lengths[index]! % BLOCK
          for (let head = 0; head < kvHeads; head += 1) {
            const from = (index * kvHeads + head) * longest * headSize
            const to = tailAt(index, head) + filled * headSize
            for (let at = 0; at < length * headSize; at += 1) tail[to + at] = added[from + at]!
          }
        })
      }
      fresh.forEach(({ length }, index) => {
        lengths[index]! += length
      })
      if (finished.length === 0) return
      ensure(rows.length, Math.max(...finished.map(closedLength)))
      for (const index of finished) {
        const at = (closedLength(index) - BLOCK) * headSize
        for (const name of names) {
          const tail = tails.get(name)!
          for (let head = 0; head < kvHeads; head += 1) {
            const from = tailAt(index, head)
            closed
              .get(name)!
              .set(tail.subarray(from, from + BLOCK * headSize), closedAt(index, head) + at)
            tail.fill(0, from, from + BLOCK * headSize)
          }
        }
        maskRow(index)
      }
    },
  }
}
