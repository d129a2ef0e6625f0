import { expect, test } from 'vitest'

import { deriveSeed, randomStream } from '../src/seed.ts'

test('a seed depends on the whole path and on nothing else', () => {
  expect(deriveSeed(7, 'train', 3, 1)).toBe(deriveSeed(7, 'train', 3, 1))
  const seeds = [
    deriveSeed(7, 'train', 3, 1),
    deriveSeed(8, 'train', 3, 1),
    deriveSeed(7, 'eval', 3, 1),
    deriveSeed(7, 'train', 31),
    deriveSeed(7, 'train', 3, '1'),
    deriveSeed(7 + 2 ** 32, 'train', 3, 1),
  ]
  expect(new Set(seeds).size).toBe(seeds.length)
})

test('derived seeds are uint32 and do not collide in a large run', () => {
  const seen = new Set<number>()
  for (let step = 0; step < 40; step += 1) {
    for (let group = 0; group < 32; group += 1) {
      for (let member = 0; member < 16; member += 1)
        seen.add(deriveSeed(1, 'train', step, group, member))
    }
  }
  // 20,480 draws from 2^32: about 0.05 collisions expected.
  expect(seen.size).toBeGreaterThanOrEqual(20_479)
  for (const seed of seen) expect(seed >>> 0).toBe(seed)
})

test('seeds of earlier releases stay what they were, so recorded runs can be played again', () => {
  expect([deriveSeed(0), deriveSeed(1, 'train', 0, 0, 0), deriveSeed(42, 'eval', 7)])
    .toMatchInlineSnapshot(`
    [
      1768809451,
      2617945709,
      3612447558,
    ]
  `)
})

test('a stream is uniform, repeats for its seed and differs for another', () => {
  const stream = randomStream(5, 'x')
  const values = Array.from({ length: 10_000 }, () => stream.next())
  const again = randomStream(5, 'x')
  expect(values.slice(0, 50)).toEqual(Array.from({ length: 50 }, () => again.next()))
  expect(values.reduce((sum, value) => sum + value, 0) / values.length).toBeCloseTo(0.5, 1)
  const counts = Array.from({ length: 10 }, () => 0)
  for (const value of values) counts[Math.floor(value * 10)]! += 1
  // Standard deviation of a bin is 30; six of them.
  for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(180)
  expect(randomStream(6, 'x').next()).not.toBe(values[0])
})

test('shuffle keeps every item, leaves its input alone and repeats for its seed', () => {
  const items = Array.from({ length: 100 }, (_, index) => index)
  const shuffled = randomStream(1).shuffle(items)
  expect(items[0]).toBe(0)
  expect(shuffled).not.toEqual(items)
  expect(shuffled.toSorted((a, b) => a - b)).toEqual(items)
  expect(randomStream(1).shuffle(items)).toEqual(shuffled)
})
