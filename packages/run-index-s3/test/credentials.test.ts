import { expect, test, vi } from 'vitest'

import { cacheCredentials, type S3Credentials } from '../src/credentials.ts'

type Ask = () => Promise<S3Credentials>

const value = { accessKeyId: 'a', secretAccessKey: 's' }

test('a function is asked once for all who wait, and again shortly before expiry', async () => {
  let now = 0
  const ask = vi.fn<Ask>(async () => ({ ...value, expiration: new Date(now + 600_000) }))
  const { get } = cacheCredentials(ask, () => now)
  await Promise.all([get(), get(), get()])
  now = 500_000
  await get()
  expect(ask).toHaveBeenCalledTimes(1)
  now = 550_000
  await get()
  expect(ask).toHaveBeenCalledTimes(2)
})

test('a failure is not kept', async () => {
  const ask = vi.fn<Ask>().mockRejectedValueOnce(new Error('away')).mockResolvedValue(value)
  const { get } = cacheCredentials(ask)
  await expect(get()).rejects.toThrow('away')
  expect(await get()).toBe(value)
})

test('only the refused credentials are forgotten, not those that came since', async () => {
  const ask = vi.fn<Ask>(async () => ({ ...value }))
  const { get, forget } = cacheCredentials(ask)
  const first = await get()
  forget(first)
  const second = await get()
  forget(first)
  expect(await get()).toBe(second)
  expect(ask).toHaveBeenCalledTimes(2)
})
