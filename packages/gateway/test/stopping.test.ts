import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createStopping } from '../src/calls/stopping.ts'

/** Work that never ends and doesn't look at its signal; it keeps the signals that it got. */
function deafWork() {
  const signals: AbortSignal[] = []
  return {
    signals,
    work: (signal: AbortSignal) => {
      signals.push(signal)
      return new Promise<never>(() => {})
    },
  }
}

test('a stop ends work that ignores its signal, at once and for good', async () => {
  const clock = simulatedClock()
  const stopping = createStopping(clock)
  const { signals, work } = deafWork()
  const running = stopping.run(work, 1_000)
  const why = new Error('the attempt is over')
  stopping.stop(why)
  stopping.stop(new Error('later'))
  await expect(running).rejects.toBe(why)
  await expect(stopping.run(work, 1_000)).rejects.toBe(why)
  expect(signals.map(({ aborted, reason }) => [aborted, reason])).toEqual([[true, why]])
  expect(stopping.reason).toBe(why)
  expect(clock.sleeping).toBe(0)
})

test('a deadline ends work that ignores its signal, and is no stop', async () => {
  const clock = simulatedClock()
  const stopping = createStopping(clock)
  const { signals, work } = deafWork()
  await expect(clock.drive(stopping.run(work, 1_000))).rejects.toMatchObject({ code: 'DEADLINE' })
  expect(clock.now()).toBe(1_000)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(stopping.reason).toBeUndefined()
  expect(clock.sleeping).toBe(0)
})

test('work that fails fails with its own error, and its timer is called off', async () => {
  const clock = simulatedClock()
  const stopping = createStopping(clock)
  const failure = new Error('503')
  await expect(stopping.run(() => Promise.reject(failure), 1_000)).rejects.toBe(failure)
  expect(clock.sleeping).toBe(0)
  expect(stopping.signal.aborted).toBe(false)
  stopping.stop(new Error('over'))
  expect(stopping.signal.aborted).toBe(true)
})
