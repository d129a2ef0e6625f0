import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createAlarms } from '../src/alarms.ts'

test('waits that are over in time share one timer', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  const alarm = { ring: () => expect.unreachable('it was cleared') }
  for (let wait = 0; wait < 1_000; wait += 1) {
    alarms.set(alarm, 60_000)
    await clock.advance(10)
    alarms.clear(alarm)
  }
  expect(clock.sleeping).toBe(1)
})

test('each alarm rings at its own time, whatever the others are set to', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  const rung: [string, number][] = []
  for (const [name, time] of [
    ['late', 300],
    ['early', 100],
    ['later', 400],
    ['soon', 100],
  ] as const)
    alarms.set({ ring: () => rung.push([name, clock.now()]) }, time)
  await clock.advance(1_000)
  expect(rung).toEqual([
    ['early', 100],
    ['soon', 100],
    ['late', 300],
    ['later', 400],
  ])
})

test('an alarm that is set anew rings once, at the new time', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  const rung: number[] = []
  const alarm = { ring: () => rung.push(clock.now()) }
  alarms.set(alarm, 100)
  await clock.advance(50)
  alarms.set(alarm, 200)
  await clock.advance(1_000)
  expect(rung).toEqual([250])
})

test('closed alarms leave nothing that keeps a process alive', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  alarms.set({ ring: () => expect.unreachable('it was closed') }, 100)
  alarms.close()
  await clock.advance(1_000)
  expect(clock.sleeping).toBe(0)
})
