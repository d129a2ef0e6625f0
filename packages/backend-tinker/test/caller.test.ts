import { TiltyardError } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { backoff } from '../src/caller.ts'
import { HOSTED_URL, TinkerError, tinkerClient, type TinkerOptions } from '../src/index.ts'
import { fakeService, json, silence, type Answer } from './fake-service.ts'

const gap = (times: readonly number[]) => times[1]! - times[0]!

const path = '/get_server_capabilities'

/** Asks for capabilities; `answers` are given in order, the last again and again. */
function ask(answers: readonly Answer[], options: Partial<TinkerOptions> = {}) {
  const clock = simulatedClock()
  const times: number[] = []
  const service = fakeService((asked) => {
    if (asked.path !== path) return undefined
    times.push(clock.now())
    return answers[Math.min(times.length, answers.length) - 1]!(asked)
  })
  const client = tinkerClient({
    baseUrl: 'http://service.test/svc',
    apiKey: 'tml-key',
    fetch: service.fetch,
    clock,
    ...options,
  })
  return { clock, service, client, times, work: clock.drive(client.rest.capabilities()) }
}

const good: Answer = () => json({ supported_models: [] })
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  () =>
    json({ detail: `status ${code}` }, code, headers)

async function failure(work: Promise<unknown>): Promise<TinkerError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(TinkerError)
  return error as TinkerError
}

describe('#8 what is tried again', () => {
  test.each([408, 409, 429, 500, 502, 529])('status %i, then it works', async (code) => {
    const { work, service } = ask([status(code), good])
    await expect(work).resolves.toEqual({ supported_models: [] })
    expect(service.at(path)).toHaveLength(2)
  })

  test.each([
    [400, 'TINKER_REFUSED'],
    [401, 'TINKER_KEY'],
    [403, 'TINKER_KEY'],
    [404, 'TINKER_REFUSED'],
    [422, 'TINKER_REFUSED'],
    [402, 'TINKER_BILLING'],
  ])('status %i fails at once, as %s', async (code, kind) => {
    const { work, service } = ask([status(code, { 'x-request-id': 'r-7' })])
    const error = await failure(work)
    expect(error).toMatchObject({ code: kind, status: code, requestId: 'r-7', category: 'user' })
    expect(error.message).toContain(`status ${code}`)
    expect(service.at(path)).toHaveLength(1)
  })

  test('a connection that breaks', async () => {
    const { work } = ask([() => Promise.reject(new TypeError('socket hang up')), good])
    await expect(work).resolves.toBeDefined()
  })

  test('F47: a service that never answers: each try ends at its deadline, all at the end of the budget', async () => {
    const { work, clock, times } = ask([silence], {
      deadlines: { request: 5_000, retries: 30_000 },
    })
    const error = await failure(work)
    expect(error.code).toBe('TINKER_UNREACHABLE')
    expect(error.message).toContain('service.test')
    expect(times.length).toBeGreaterThan(3)
    expect(clock.now()).toBeLessThanOrEqual(35_000)
  })

  test('F47: a service that doesn’t answer is told of within seconds, one that does is not', async () => {
    const told: [number, string][] = []
    const clock = simulatedClock()
    const warn = (text: string) => void told.push([clock.now(), text])
    const logger = { debug() {}, info() {}, error() {}, warn }
    const options = { clock, logger, deadlines: { request: 60_000, retries: 0 } }
    const silent = ask([silence], options)
    const began = clock.now()
    await failure(clock.drive(silent.work))
    expect(told.map(([at]) => at - began)).toEqual([10_000])
    expect(told[0]![1]).toContain('the service has not answered yet')
    await clock.drive(ask([good], options).work)
    await clock.advance(60_000)
    expect(told).toHaveLength(1)
  })

  test('x-should-retry wins over the status', async () => {
    const refused = ask([status(500, { 'x-should-retry': 'false' })])
    await failure(refused.work)
    expect(refused.times).toHaveLength(1)
    const repeated = ask([status(400, { 'x-should-retry': 'true' }), good])
    await repeated.work
    expect(repeated.times).toHaveLength(2)
  })
})

describe('#9 #10 how long it waits', () => {
  test('F48: as long as the service asks for, up to a minute', async () => {
    const milliseconds = ask([status(429, { 'retry-after-ms': '1250' }), good])
    await milliseconds.work
    expect(gap(milliseconds.times)).toBe(1_250)
    const seconds = ask([status(429, { 'retry-after': '2' }), good])
    await seconds.work
    expect(gap(seconds.times)).toBe(2_000)
    const date = new Date(Date.now() + 55_000).toUTCString()
    const until = ask([status(503, { 'retry-after': date }), good])
    await until.work
    expect(gap(until.times)).toBeGreaterThan(15_000)
  })

  test.each(['61', '0', '-3', 'soon'])('a retry-after of %s is no such wish', async (after) => {
    const { work, times } = ask([status(429, { 'retry-after': after }), good])
    await work
    expect(gap(times)).toBeLessThanOrEqual(500)
  })

  test('else half a second, doubled, at most ten seconds, up to a quarter less', () => {
    for (let round = 0; round < 200; round += 1) {
      expect(backoff(0)).toBeGreaterThanOrEqual(375)
      expect(backoff(0)).toBeLessThanOrEqual(500)
      expect(backoff(round)).toBeLessThanOrEqual(10_000)
    }
  })
})

test('#7 one idempotency key for all tries of a call, another for the next call', async () => {
  const service = fakeService(({ path: at }) =>
    at === '/create_session' && service.at(at).length < 3 ? json({}, 500) : undefined,
  )
  const clock = simulatedClock()
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    clock,
  })
  await clock.drive(client.session())
  const keys = service.at('/create_session').map(({ headers }) => headers.get('x-idempotency-key'))
  expect(keys).toHaveLength(3)
  expect(new Set(keys).size).toBe(1)
  expect(service.at('/client/config')[0]!.headers.get('x-idempotency-key')).not.toBe(keys[0])
  await client.close()
})

test('the base address keeps its path', async () => {
  const urls: string[] = []
  const client = tinkerClient({
    baseUrl: 'http://h.test:1/svc/',
    apiKey: 'k',
    fetch: (async (url: string) => {
      urls.push(url)
      return json({ supported_models: [] })
    }) as typeof fetch,
  })
  await client.rest.capabilities()
  expect(urls.at(-1)).toBe('http://h.test:1/svc/api/v1/get_server_capabilities')
})

describe('F48: an account that can’t pay', () => {
  test.each(['You are out of credits', 'Payment required: check your billing'])(
    'is told at once too where the service says it with a 429: %s',
    async (detail) => {
      const { work, service } = ask([() => json({ detail }, 429, { 'retry-after': '2' }), good])
      const error = await failure(work)
      expect(error).toMatchObject({ code: 'TINKER_BILLING', status: 429 })
      expect(error.message).toContain('add credit')
      expect(service.at(path)).toHaveLength(1)
    },
  )

  test('stops at once and says what to do', async () => {
    const { work } = ask([status(402)])
    const error = await failure(work)
    expect(error.message).toContain('add credit')
  })

  test('waits when it was told to, and says so once in a while', async () => {
    const lines: string[] = []
    const logger = { debug() {}, info() {}, error() {}, warn: (text: string) => lines.push(text) }
    const { work, times } = ask([status(402), status(402), good], {
      deadlines: { billing: 60_000 },
      logger,
    })
    await work
    expect(times).toEqual([0, 5_000, 10_000])
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('paused')
  })
})

describe('the options', () => {
  test('#6 a key that can’t be one of the hosted service is refused before it is sent', () => {
    expect(() => tinkerClient({ apiKey: 'sk-other' })).toThrow('tml-')
    expect(() => tinkerClient({ apiKey: 'sk-other' })).not.toThrow('sk-other')
    expect(() => tinkerClient({ baseUrl: HOSTED_URL, apiKey: 'tml-x' })).not.toThrow()
    expect(() => tinkerClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'anything' })).not.toThrow()
  })

  test('mistakes name the right key', () => {
    const wrong = { apiKey: 'k', baseURL: 'http://x.test' } as unknown as TinkerOptions
    expect(() => tinkerClient(wrong)).toThrow('did you mean "baseUrl"?')
    expect(() => tinkerClient({ baseUrl: 'ftp://x', apiKey: 'k' })).toThrow('http')
    expect(() => tinkerClient({ baseUrl: 'http://x.test', apiKey: '' })).toThrow('TINKER_API_KEY')
    expect(() => tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k\n' })).toThrow('line break')
  })

  test('nothing is sent before the first call', async () => {
    const service = fakeService(() => undefined)
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
    await client.close()
    await client.close()
    expect(service.asked).toHaveLength(0)
    await expect(client.session()).rejects.toSatisfy((error) => TiltyardError.is(error, 'STATE'))
  })
})
