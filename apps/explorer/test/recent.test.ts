import { expect, test } from 'vitest'

import { createRecent } from '../src/server/recent.ts'

function counted() {
  let loads = 0
  let time = 0
  const recent = createRecent<number>({ most: 2, forMs: 10, now: () => time })
  return {
    get: (key: string, load = async () => (loads += 1)) => recent.get(key, load),
    loads: () => loads,
    pass: (ms: number) => (time += ms),
  }
}

test('who asks while it is loaded waits for the same load', async () => {
  const { get, loads } = counted()
  expect(await Promise.all([get('a'), get('a')])).toEqual([1, 1])
  expect(loads()).toBe(1)
})

test('a value is kept for a while, and the while begins when it is there', async () => {
  const { get, pass } = counted()
  let finish: (value: number) => void = () => {}
  const slow = get('a', () => new Promise<number>((resolve) => (finish = resolve)))
  pass(100)
  finish(7)
  expect(await slow).toBe(7)
  expect(await get('a')).toBe(7)
  pass(10)
  expect(await get('a')).toBe(1)
})

test('a failure is not kept', async () => {
  const { get } = counted()
  await expect(get('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await get('a')).toBe(1)
})

test('no more than so many are kept', async () => {
  const { get, loads } = counted()
  for (const key of ['a', 'b', 'c', 'b', 'c', 'a']) await get(key)
  expect(loads()).toBe(4)
})
