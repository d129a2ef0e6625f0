import { expect, test } from 'vitest'

import { simulatedClock } from '../src/index.ts'

test('sleepers wake in order of time, then of arrival', async () => {
  const clock = simulatedClock()
  const woken: [string, number][] = []
  const sleep = async (name: string, milliseconds: number) => {
    await clock.sleep(milliseconds)
    woken.push([name, clock.now()])
  }
  const all = Promise.all([sleep('c', 20), sleep('a', 10), sleep('b', 10)])
  await clock.drive(all)
  expect(woken).toEqual([
    ['a', 10],
    ['b', 10],
    ['c', 20],
  ])
})

test('advancing wakes those whose time has come, and those that they wake for', async () => {
  const clock = simulatedClock(100)
  let ticks = 0
  const tick = async () => {
    for (; ticks < 10; ticks += 1) await clock.sleep(10)
  }
  const ticking = tick()
  await clock.advance(35)
  expect(ticks).toBe(3)
  expect(clock.now()).toBe(135)
  await clock.drive(ticking)
  expect(clock.now()).toBe(200)
})

test('an aborted sleep rejects with the reason and wakes no more', async () => {
  const clock = simulatedClock()
  const controller = new AbortController()
  const sleeping = clock.sleep(1_000, controller.signal)
  const reason = new Error('enough')
  controller.abort(reason)
  await expect(sleeping).rejects.toBe(reason)
  expect(clock.sleeping).toBe(0)
  await expect(clock.sleep(1, controller.signal)).rejects.toBe(reason)
})

test('work that waits for nothing is reported instead of waited for', async () => {
  const clock = simulatedClock()
  await clock.advance(5)
  await expect(clock.drive(new Promise(() => {}))).rejects.toThrow(
    'stuck at 5 ms: the work waits, and nothing is under way',
  )
})

test('work that takes some turns of the event loop is waited for', async () => {
  expect(await simulatedClock().drive(turns(10))).toBe('done')
})

async function turns(count: number): Promise<string> {
  for (let turn = 0; turn < count; turn += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
  return 'done'
}
