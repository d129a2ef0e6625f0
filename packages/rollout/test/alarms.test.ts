import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createAlarms } from '../src/alarms.ts'

test('waits that are over in time share one timer', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  const alarm = alarms.alarm()
  for (let wait = 0; wait < 1_000; wait += 1) {
    alarm.set(60_000, () => expect.unreachable('it was cleared'))
    await clock.advance(10)
    alarm.clear()
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
    alarms.alarm().set(time, () => rung.push([name, clock.now()]))
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
  const alarm = createAlarms(clock).alarm()
  const rung: number[] = []
  alarm.set(100, () => rung.push(clock.now()))
  await clock.advance(50)
  alarm.set(200, () => rung.push(clock.now()))
  await clock.advance(1_000)
  expect(rung).toEqual([250])
})

test('closed alarms leave nothing that keeps a process alive', async () => {
  const clock = simulatedClock()
  const alarms = createAlarms(clock)
  alarms.alarm().set(100, () => expect.unreachable('it was closed'))
  alarms.close()
  await clock.advance(1_000)
  expect(clock.sleeping).toBe(0)
})
