import { expect, test, vi } from 'vitest'

import { DeadlineError } from '../src/errors.ts'
import { after, asError, systemClock, withDeadline, type Clock } from '../src/waiting.ts'

const never = () => new Promise<never>(() => {})
const throwAtOnce = (): Promise<never> => {
  throw new Error('at once')
}

test('work that ends in time gives its result and leaves no timer behind', async () => {
  vi.useFakeTimers()
  try {
    await expect(
      withDeadline(async () => 3, { waitingFor: 'a number', milliseconds: 1000 }),
    ).resolves.toBe(3)
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('a deadline says what was waited for, also when the work ignores its signal', async () => {
  const failed = withDeadline(never, { waitingFor: 'the reply of tool "lookup"', milliseconds: 5 })
  await expect(failed).rejects.toThrow('gave up waiting for the reply of tool "lookup" after 5 ms')
  await expect(failed).rejects.toBeInstanceOf(DeadlineError)
})

test('the work sees the deadline through its signal', async () => {
  let seen: unknown
  const work = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        seen = signal.reason
        reject(asError(signal.reason))
      })
    })
  await expect(withDeadline(work, { waitingFor: 'x', milliseconds: 5 })).rejects.toBeInstanceOf(
    DeadlineError,
  )
  expect(seen).toBeInstanceOf(DeadlineError)
})

test('the outer signal ends the wait with its own reason', async () => {
  const controller = new AbortController()
  const failed = withDeadline(never, {
    waitingFor: 'x',
    milliseconds: 60_000,
    signal: controller.signal,
  })
  controller.abort(new Error('the run was stopped'))
  await expect(failed).rejects.toThrow('the run was stopped')
  await expect(withDeadline(never, { waitingFor: 'x', signal: controller.signal })).rejects.toThrow(
    'the run was stopped',
  )
})

test('work that throws before its first await is an ordinary rejection', async () => {
  await expect(withDeadline(throwAtOnce, { waitingFor: 'x', milliseconds: 5 })).rejects.toThrow(
    'at once',
  )
})

test('the system clock sleeps until its signal', async () => {
  const controller = new AbortController()
  const slept = systemClock.sleep(60_000, controller.signal)
  controller.abort()
  await expect(slept).rejects.toThrow('aborted')
  await expect(systemClock.sleep(1, controller.signal)).rejects.toThrow('aborted')
  await expect(systemClock.sleep(1)).resolves.toBeUndefined()
})

const sleepsOnly: Clock = {
  now: () => systemClock.now(),
  sleep: (milliseconds, signal) => systemClock.sleep(milliseconds, signal),
}

test.each([
  ['the system clock', systemClock],
  ['a clock that only sleeps', sleepsOnly],
])('a timer of %s works once, or not at all when it is called off', async (_, clock) => {
  vi.useFakeTimers()
  try {
    const work = vi.fn<(what: string) => void>()
    const callOff = after(clock, 1000, () => work('called off'))
    after(clock, 1000, () => work('in time'))
    callOff()
    await vi.advanceTimersByTimeAsync(1000)
    callOff()
    expect(work.mock.calls).toEqual([['in time']])
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})
