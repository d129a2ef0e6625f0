import { randomStream } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { mergeTable } from '../src/bpe/merge-table.ts'
import { mergeByHeap, mergeByScan, mergeInPlace } from '../src/bpe/merge.ts'

/** Merges over the ids 0–3: random pairs of what there is, each into a new id. */
function randomMerges(seed: number, count: number) {
  const random = randomStream(seed, 'merges')
  const left = new Int32Array(count)
  const right = new Int32Array(count)
  const result = new Int32Array(count)
  for (let rank = 0; rank < count; rank += 1) {
    left[rank] = random.integer(4 + rank)
    right[rank] = random.integer(4 + rank)
    result[rank] = 4 + rank
  }
  return mergeTable({ left, right, result })
}

test('the quick way for short pieces and the sure way for long ones agree', () => {
  const random = randomStream(1, 'pieces')
  for (let round = 0; round < 500; round += 1) {
    const table = randomMerges(round, 1 + random.integer(40))
    const ids = Int32Array.from({ length: 1 + random.integer(200) }, () => random.integer(4))
    const [scanned, heaped] = [ids.slice(), ids.slice()]
    const length = mergeByScan(scanned, ids.length, table)
    expect(mergeByHeap(heaped, ids.length, table)).toBe(length)
    expect(heaped.subarray(0, length)).toEqual(scanned.subarray(0, length))
  }
})

test('of equal pairs the leftmost joins first', () => {
  const table = mergeTable({
    left: Int32Array.of(0),
    right: Int32Array.of(0),
    result: Int32Array.of(1),
  })
  const ids = Int32Array.of(0, 0, 0)
  expect(mergeInPlace(ids, 3, table)).toBe(2)
  expect([...ids.subarray(0, 2)]).toEqual([1, 0])
})

test('a pair that is listed twice counts where it is listed last', () => {
  const table = mergeTable({
    left: Int32Array.of(0, 2, 0),
    right: Int32Array.of(1, 3, 1),
    result: Int32Array.of(9, 8, 7),
  })
  expect(table.rank(0, 1)).toBe(2)
  expect(table.result(2)).toBe(7)
  expect(table.rank(1, 0)).toBe(-1)
})

test('a run of a hundred thousand equal characters takes no square of steps', () => {
  const count = 16
  const table = mergeTable({
    left: Int32Array.from({ length: count }, (_, rank) => rank),
    right: Int32Array.from({ length: count }, (_, rank) => rank),
    result: Int32Array.from({ length: count }, (_, rank) => rank + 1),
  })
  let looked = 0
  const counted = { ...table, rank: (a: number, b: number) => ((looked += 1), table.rank(a, b)) }
  const ids = new Int32Array(1 << 17)
  expect(mergeInPlace(ids, ids.length, counted)).toBe(2)
  expect(looked).toBeLessThan(ids.length * 10)
})
