import { expect, test } from 'vitest'

import { createSlots } from '../src/index.ts'

test('slots are given first come, first served', async () => {
  const slots = createSlots(1)
  const first = await slots.acquire()
  const order: number[] = []
  const waiting = [1, 2, 3].map(async (caller) => {
    const lease = await slots.acquire()
    order.push(caller)
    lease.release()
  })
  expect(slots.waiting).toBe(3)
  first.release()
  await Promise.all(waiting)
  expect(order).toEqual([1, 2, 3])
  expect(slots.inUse).toBe(0)
})

test('E4: a cancelled wait rejects with its reason and takes no slot', async () => {
  const slots = createSlots(1)
  const held = await slots.acquire()
  const { signal, cancel } = cancellable()
  const cancelled = slots.acquire(signal)
  const next = slots.acquire()
  const reason = new Error('enough')
  cancel(reason)
  await expect(cancelled).rejects.toBe(reason)
  held.release()
  await next
  expect(slots).toMatchObject({ inUse: 1, waiting: 0 })
  await expect(slots.acquire(signal)).rejects.toBe(reason)
})

test('E3: a slot is given back once, however often it is released', async () => {
  const slots = createSlots(2)
  const lease = await slots.acquire()
  await slots.acquire()
  lease.release()
  lease.release()
  expect(slots.inUse).toBe(1)
})

test('the peak is the most that were in use at once', async () => {
  const slots = createSlots(5)
  const leases = await Promise.all([1, 2, 3].map(() => slots.acquire()))
  for (const lease of leases) lease.release()
  await slots.acquire()
  expect(slots.peak).toBe(3)
})

test.each([0, -1, 1.5, Number.NaN])('%d slots are refused', (size) => {
  expect(() => createSlots(size)).toThrow('expected a whole number of at least 1')
})

function cancellable() {
  const controller = new AbortController()
  return { signal: controller.signal, cancel: (reason: Error) => controller.abort(reason) }
}
