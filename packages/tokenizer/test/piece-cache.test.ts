import { expect, test } from 'vitest'

import { pieceCache } from '../src/bpe/piece-cache.ts'

test('what is used survives, what is not goes, and the count stays bounded', () => {
  const cache = pieceCache(4)
  cache.set('kept', 1)
  for (let index = 0; index < 100; index += 1) {
    cache.set(`piece ${index}`, index)
    expect(cache.get('kept')).toBe(1)
  }
  const left = Array.from({ length: 100 }, (_, index) => cache.get(`piece ${index}`))
  expect(left.filter((id) => id !== undefined).length).toBeLessThanOrEqual(8)
  expect(cache.get('piece 99')).toBe(99)
})

test('long pieces are given back but not kept', () => {
  const cache = pieceCache()
  const long = 'x'.repeat(100)
  expect(cache.set(long, 7)).toBe(7)
  expect(cache.get(long)).toBeUndefined()
  const ids = Int32Array.of(1, 2)
  expect(cache.set('a piece of twenty-odd', ids)).toBe(ids)
  expect(cache.get('a piece of twenty-odd')).toBe(ids)
})
