import { expect, test } from 'vitest'

import { forEach, mapAhead } from '../src/ahead.ts'
import { all } from './support/small-run.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Counts calls under way. */
function counted<T, R>(work: (item: T) => Promise<R>) {
  const state = { now: 0, most: 0 }
  const wrapped = async (item: T) => {
    state.now += 1
    state.most = Math.max(state.most, state.now)
    try {
      await turn()
      return await work(item)
    } finally {
      state.now -= 1
    }
  }
  return { state, wrapped }
}

test('mapping ahead keeps the order and the bound', async () => {
  const { state, wrapped } = counted(async (item: number) => item * 2)
  expect(await all(mapAhead([1, 2, 3, 4, 5], 2, wrapped))).toEqual([2, 4, 6, 8, 10])
  expect(state.most).toBe(2)
})

test('a failure of mapping comes in its turn', async () => {
  const mapped = mapAhead([1, 2, 3], 3, async (item) => {
    if (item === 2) throw new Error('two')
    return item
  })
  expect(await mapped.next()).toEqual({ done: false, value: 1 })
  await expect(mapped.next()).rejects.toThrow('two')
})

test('working on all rejects with the first failure once nothing is under way', async () => {
  const { state, wrapped } = counted(async (item: number) => {
    if (item === 2) throw new Error('two')
  })
  const done: number[] = []
  const work = forEach([1, 2, 3, 4, 5, 6], 3, async (item) => {
    await wrapped(item)
    done.push(item)
  })
  await expect(work).rejects.toThrow('two')
  expect(state).toEqual({ now: 0, most: 3 })
  expect(done).not.toContain(6)
  await forEach([], 3, wrapped)
})
