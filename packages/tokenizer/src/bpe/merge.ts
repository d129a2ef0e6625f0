import type { MergeTable } from './merge-table.ts'

/** From this length on the pairs are kept in a heap: a run of n equal characters would cost n² otherwise. */
const HEAP_FROM = 128

/**
 * Joins neighbours by rank, the leftmost first among equals, until none joins. Works on the first `length` ids of `ids`,
 * leaves the result at its start and returns its length.
 */
export function mergeInPlace(ids: Int32Array, length: number, table: MergeTable): number {
  return length < HEAP_FROM ? mergeByScan(ids, length, table) : mergeByHeap(ids, length, table)
}

export function mergeByScan(ids: Int32Array, length: number, table: MergeTable): number {
  const ranks: number[] = []
  for (let at = 0; at + 1 < length; at += 1) ranks.push(table.rank(ids[at]!, ids[at + 1]!))
  let count = length
  for (;;) {
    let best = -1
    let where = 0
    for (let at = 0; at < ranks.length; at += 1) {
      const rank = ranks[at]!
      if (rank !== -1 && (best === -1 || rank < best)) {
        best = rank
        where = at
      }
    }
    if (best === -1) return count
    ids[where] = table.result(best)
    ids.copyWithin(where + 1, where + 2, count)
    ranks.splice(where, 1)
    count -= 1
    if (where > 0) ranks[where - 1] = table.rank(ids[where - 1]!, ids[where]!)
    if (where + 1 < count) ranks[where] = table.rank(ids[where]!, ids[where + 1]!)
  }
}

export function mergeByHeap(ids: Int32Array, length: number, table: MergeTable): number {
  const next = new Int32Array(length)
  const previous = new Int32Array(length)
  for (let at = 0; at < length; at += 1) {
    next[at] = at + 1
    previous[at] = at - 1
  }
  // One number orders a candidate: its rank, then its place.
  const heap: number[] = []
  const offer = (at: number) => {
    const right = next[at]!
    if (right >= length) return
    const rank = table.rank(ids[at]!, ids[right]!)
    if (rank !== -1) push(heap, rank * length + at)
  }
  for (let at = 0; at + 1 < length; at += 1) offer(at)

  while (heap.length > 0) {
    const candidate = pop(heap)
    const at = candidate % length
    const rank = (candidate - at) / length
    const right = next[at]!
    // Since it was offered one of the two may have been joined to something else.
    if (right >= length || ids[at] === GONE || table.rank(ids[at]!, ids[right]!) !== rank) continue
    ids[at] = table.result(rank)
    ids[right] = GONE
    const after = next[right]!
    next[at] = after
    if (after < length) previous[after] = at
    if (previous[at]! >= 0) offer(previous[at]!)
    offer(at)
  }

  let count = 0
  for (let at = 0; at < length; at = next[at]!) {
    ids[count] = ids[at]!
    count += 1
  }
  return count
}

const GONE = -1

function push(heap: number[], value: number): void {
  let at = heap.length
  heap.push(value)
  while (at > 0) {
    const parent = (at - 1) >> 1
    if (heap[parent]! <= value) break
    heap[at] = heap[parent]!
    at = parent
  }
  heap[at] = value
}

function pop(heap: number[]): number {
  const top = heap[0]!
  const last = heap.pop()!
  if (heap.length === 0) return top
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child += 1
    if (heap[child]! >= last) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = last
  return top
}
