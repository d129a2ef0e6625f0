import { describe, expect, test } from 'vitest'

import { chooseToken, type Drawing } from '../../src/sample/choose.ts'
import { stopWatch } from '../../src/sample/stops.ts'
import { cacheStore } from '../../src/sample/store.ts'

const shares = Float32Array.of(0.1, 0.4, 0.2, 0.3)
const plain: Drawing = { temperature: 1, topK: 0, topP: 1 }

function counts(drawing: Drawing): number[] {
  const found = [0, 0, 0, 0]
  for (let u = 0.0005; u < 1; u += 0.001) found[chooseToken(shares, drawing, u)]! += 1
  return found
}

function text(stop: string) {
  return stopWatch({ tokens: [0], strings: [stop] }, (id) => Uint8Array.of(id))
}

function cache(length: number) {
  return { length, data: new Float32Array(length) }
}

function tokens(length: number, last = length): Int32Array {
  return Int32Array.from({ length }, (_, at) => (at === length - 1 ? last : at + 1))
}

describe('a token', () => {
  test('comes as often as its share', () => {
    expect(counts(plain)).toEqual([100, 400, 200, 300])
  })

  test('is the likeliest at temperature 0, the first of equals', () => {
    expect(chooseToken(Float32Array.of(0.2, 0.4, 0.4), { ...plain, temperature: 0 }, 0.9)).toBe(1)
  })

  test('is one of the k likeliest, in their proportions', () => {
    expect(counts({ ...plain, topK: 2 })).toEqual([0, 571, 0, 429])
  })

  test('is one of the fewest that reach p', () => {
    expect(counts({ ...plain, topP: 0.7 })).toEqual([0, 571, 0, 429])
    expect(counts({ ...plain, topP: 0.71 })[2]).toBeGreaterThan(0)
    expect(counts({ ...plain, topP: 0.01 })).toEqual([0, 1_000, 0, 0])
  })

  test('is never one without a share, when rounding leaves the sum short', () => {
    expect(chooseToken(Float32Array.of(0.5, 0.4999, 0), plain, 0.99999)).toBe(1)
  })
})

describe('stopping', () => {
  test('a stop string is found across tokens and inside of one', () => {
    const watch = stopWatch({ tokens: [], strings: ['</end>'] }, (id) =>
      new TextEncoder().encode(['a</', 'en', 'd>b', '<'][id]),
    )
    expect([3, 0, 1, 2].map((id) => watch.ends(id))).toEqual([false, false, false, true])
  })

  test('a stop string may be part of a character', () => {
    const watch = text('é')
    expect([0xc3, 0xa9].map((id) => watch.ends(id))).toEqual([false, true])
  })

  test('a stop token ends whatever the text is', () => {
    expect(text('xyz').ends(0)).toBe(true)
  })
})

describe('the store of caches', () => {
  test('finds the longest stored start and leaves one token to read', () => {
    const store = cacheStore(1_000)
    for (const length of [3, 5, 8]) store.put(tokens(length), cache(length))
    expect(store.find(tokens(7))).toEqual({ cache: cache(5), length: 5 })
    expect(store.find(tokens(8))).toEqual({ cache: cache(8), length: 7 })
    expect(store.find(tokens(3, 99))).toBeUndefined()
  })

  test('keeps within its limit, the least recently used going first', () => {
    const store = cacheStore(79)
    store.put(tokens(3), cache(3))
    store.put(tokens(4, 50), cache(4))
    expect(store.find(tokens(3))).toBeDefined()
    store.put(tokens(3, 60), cache(3))
    expect(store.bytes).toBeLessThanOrEqual(79)
    expect(store.find(tokens(4, 50))?.cache.length).toBe(3)
    expect(store.find(tokens(3))).toBeDefined()
  })
})
