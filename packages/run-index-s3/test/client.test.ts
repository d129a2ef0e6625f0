import { expect, test, vi } from 'vitest'

import { createClient, type S3Request } from '../src/client.ts'
import type { S3Credentials } from '../src/credentials.ts'
import type { RequestReport, S3RunIndexOptions } from '../src/options.ts'

const secret = 'SENTINEL-SECRET'
const credentials: S3Credentials = { accessKeyId: 'AKID', secretAccessKey: secret }
const put: S3Request = {
  method: 'PUT',
  url: 'https://runs.s3.us-east-1.amazonaws.com/a/b',
  key: 'a/b',
  body: Buffer.from('content'),
}

const xml = (code: string) => `<Error><Code>${code}</Code><Message>because</Message></Error>`
const answer = (status: number, code = '', headers: Record<string, string> = {}) =>
  new Response(status === 204 ? null : xml(code), { status, headers })

const broken = () => {
  throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
}

const never = ({ signal }: RequestInit) =>
  new Promise<Response>((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')))
  })

const halfWay = () => new Response(new ReadableStream())

const slow = (seconds: string) => answer(503, 'SlowDown', { 'retry-after': seconds })

type Fetch = typeof globalThis.fetch

/** A client whose fetch answers from a script, one after the other. Time passes only in its waits, which are kept. */
function scripted(
  script: readonly ((init: RequestInit) => Response | Promise<Response>)[],
  options: Partial<S3RunIndexOptions> = {},
) {
  const reports: RequestReport[] = []
  const waits: number[] = []
  const rest = [...script]
  const fetch = vi.fn<Fetch>(async (_, init = {}) => {
    const step = rest.length > 1 ? rest.shift()! : rest[0]!
    return step(init)
  })
  const client = createClient(
    's3://runs',
    { bucket: 'runs', credentials, fetch, onRequest: (report) => reports.push(report), ...options },
    {
      now: () => total(waits),
      async sleep(milliseconds, signal) {
        signal?.throwIfAborted()
        waits.push(milliseconds)
      },
    },
  )
  return { client, fetch, reports, waits }
}

const total = (waits: readonly number[]) => waits.reduce((sum, wait) => sum + wait, 0)

const headersOf = (fetch: ReturnType<typeof scripted>['fetch'], call = 0) =>
  new Headers(fetch.mock.calls[call]?.[1]?.headers)

test('a request is signed, with the hash of its content', async () => {
  const { client, fetch } = scripted([() => answer(200)])
  await client({ ...put, headers: { 'if-none-match': '*' } })
  const headers = headersOf(fetch)
  expect(headers.get('authorization')).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/us-east-1\/s3\/aws4_request, SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date, /,
  )
  // sha256 of "content"
  expect(headers.get('x-amz-content-sha256')).toBe(
    'ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73',
  )
})

test.each([500, 502, 503, 504, 429, 408, 409])('%d is tried again', async (status) => {
  const { client, reports } = scripted([() => answer(status), () => answer(200)])
  const { status: last } = await client(put)
  expect(last).toBe(200)
  expect(reports.map((report) => [report.attempt, report.status])).toEqual([
    [1, status],
    [2, 200],
  ])
})

test.each([200, 204, 206, 301, 400, 403, 404, 412, 416])('%d is an answer', async (status) => {
  const { client, fetch } = scripted([() => answer(status)])
  expect((await client(put)).status).toBe(status)
  expect(fetch).toHaveBeenCalledTimes(1)
})

test('a broken connection is tried again', async () => {
  const { client } = scripted([broken, broken, () => answer(200)])
  expect((await client(put)).status).toBe(200)
})

test('an answer that never comes, or stops half-way, is given up and tried again', async () => {
  const { client, reports } = scripted([never, halfWay, () => answer(200)], {
    timeoutMs: 20,
  })
  expect((await client(put)).status).toBe(200)
  expect(reports.map(({ status }) => status)).toEqual([undefined, undefined, 200])
})

test('waits grow and stay bounded, until the patience is at an end', async () => {
  const { client, waits } = scripted([() => answer(503)], { patienceMs: 40_000 })
  const failure = await client(put).catch((error: unknown) => String(error))
  expect(failure).toContain(
    `after ${waits.length + 1} attempts in ${Math.round(total(waits) / 1_000)} s`,
  )
  const most = [100, 200, 400, 800, 1_600, 3_200]
  const shares = waits.map((wait, index) => wait / (most[index] ?? 5_000))
  expect(shares.every((share) => share >= 0.5 && share <= 1)).toBe(true)
  expect(total(waits)).toBeLessThanOrEqual(40_000)
  expect(total(waits)).toBeGreaterThan(35_000)
})

test('Retry-After is followed, within reason', async () => {
  const { client, waits } = scripted([() => slow('7'), () => slow('86400'), () => answer(200)])
  await client(put)
  expect(waits).toEqual([7_000, 30_000])
})

test('a store that asks for a longer wait than there is patience is given up at once', async () => {
  const { client, waits } = scripted([() => slow('20')], { patienceMs: 15_000 })
  await expect(client(put)).rejects.toThrow('after 1 attempt in 0 s; the last: 503 SlowDown')
  expect(waits).toEqual([])
})

const get: S3Request = { ...put, method: 'GET' }
test.each([
  ['a write', put, 120_000],
  ['a read', get, 120_000],
  ['a request with a patience of its own', { ...put, patienceMs: 5_000 }, 5_000],
])('%s is sent again for so long', async (_, request, patience) => {
  const { client, waits } = scripted([() => answer(200), broken])
  await client(request)
  await expect(client(request)).rejects.toThrow('the last: fetch failed (read ECONNRESET)')
  expect(total(waits)).toBeLessThanOrEqual(patience)
  expect(total(waits)).toBeGreaterThan(patience - 5_000)
})

test('a store that was never reached is given up soon: its address may be wrong', async () => {
  const { client, waits } = scripted([broken])
  await expect(client(put)).rejects.toThrow('the last: fetch failed (read ECONNRESET)')
  expect(total(waits)).toBeLessThanOrEqual(10_000)
  expect(total(waits)).toBeGreaterThan(5_000)
})

test('a store that is reached and slow is waited for, from the first request on', async () => {
  const { client, waits } = scripted([never], { timeoutMs: 1 })
  await expect(client(put)).rejects.toThrow('the last: gave up waiting for PUT a/b after 1 ms')
  expect(total(waits)).toBeGreaterThan(100_000)
})

test('what is given up is told, with the last answer and without a secret', async () => {
  const { client } = scripted([() => answer(503, 'SlowDown')], { patienceMs: 0 })
  const outcome = client(put)
  await expect(outcome).rejects.toThrow(
    's3://runs: gave up PUT of "a/b" after 1 attempt in 0 s; the last: 503 SlowDown (because)',
  )
  await expect(outcome).rejects.toMatchObject({ code: 'STORE' })
  await expect(outcome).rejects.not.toThrow(secret)
})

test('an abort ends the waiting at once', async () => {
  const controller = new AbortController()
  const { client, fetch } = scripted([
    () => {
      controller.abort(new Error('the user is gone'))
      return answer(503)
    },
  ])
  const outcome = client({ ...put, signal: controller.signal })
  await expect(outcome).rejects.toThrow('the user is gone')
  expect(fetch).toHaveBeenCalledTimes(1)
})

test('credentials that are refused as expired are asked for again', async () => {
  const tokens = ['old', 'new']
  const ask = vi.fn<() => S3Credentials>(() => ({
    ...credentials,
    sessionToken: tokens.shift() ?? 'none',
  }))
  const { client, fetch } = scripted(
    [() => answer(400, 'ExpiredToken'), () => answer(200), () => answer(200)],
    { credentials: ask },
  )
  await client(put)
  await client(put)
  expect(ask).toHaveBeenCalledTimes(2)
  expect([0, 1, 2].map((call) => headersOf(fetch, call).get('x-amz-security-token'))).toEqual([
    'old',
    'new',
    'new',
  ])
})

test('credentials that can’t be had are a failure of the request', async () => {
  const { client } = scripted([() => answer(200)], {
    credentials: () => Promise.reject(new Error('no profile "desk"')),
  })
  await expect(client(put)).rejects.toThrow('no profile "desk"')
})
