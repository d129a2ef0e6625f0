import { inspect } from 'node:util'

import type { RunIndex } from '@tiltyard/core'
import { s3RunIndex, type RequestReport, type S3RunIndexOptions } from '@tiltyard/run-index-s3'
import { registerCases, runIndexCases } from '@tiltyard/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { episodeEvent, membersOf, runRecord, stepEvents } from './events.ts'
import { startFakeS3, type FakeRequest, type FakeS3, type Fault } from './fake-s3.ts'

let fake: FakeS3
beforeAll(async () => {
  fake = await startFakeS3()
})
afterAll(() => fake.stop())
beforeEach(() => {
  fake.options = {}
})

let prefixes = 0
const freshPrefix = () => `${(prefixes += 1)}`

function indexOn(prefix: string, options: Partial<S3RunIndexOptions> = {}): RunIndex {
  return s3RunIndex({
    bucket: fake.bucket,
    endpoint: fake.endpoint,
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    prefix,
    ...options,
  })
}

const created = new Map<RunIndex, string>()
const cases = (options: Partial<S3RunIndexOptions> = {}) =>
  runIndexCases({
    async create() {
      const prefix = freshPrefix()
      const index = indexOn(prefix, options)
      created.set(index, prefix)
      return index
    },
    reopen: async (index) => indexOn(created.get(index) ?? ''),
  })

describe('the promises of a run index', () => {
  registerCases(test, cases())
})

describe('the promises, from a store whose pages hold two keys', () => {
  beforeEach(() => {
    fake.options = { pageSize: 2 }
  })
  registerCases(test, cases())
})

describe('a store that ignores conditions', () => {
  beforeEach(() => {
    fake.options = { ignoresConditions: true }
  })

  test('F61: is found out before anything of a run is written', async () => {
    const prefix = freshPrefix()
    await expect(indexOn(prefix).claim(runRecord('one'), { expect: 'new' })).rejects.toThrow(
      `s3://runs/${prefix} ignores "If-None-Match: *": two trainers could write one run`,
    )
    expect([...fake.objects.keys()].filter((key) => key.startsWith(`${prefix}/`))).toEqual([])
  })

  test('is used all the same by who says so', async () => {
    const prefix = freshPrefix()
    const index = indexOn(prefix, { allowUnsafeWrites: true })
    const writer = await index.claim(runRecord('one'), { expect: 'new' })
    for (const event of stepEvents(0, 3)) await writer.append(event)
    await writer.close()
    expect(await membersOf(indexOn(prefix), 'one', 0)).toEqual([0, 1, 2])
    await expect(index.claim(runRecord('one'), { expect: 'new' })).rejects.toThrow('"one" exists')
  })

  test('is read by who may not write', async () => {
    const prefix = freshPrefix()
    fake.options = {}
    const writer = await indexOn(prefix).claim(runRecord('one'), { expect: 'new' })
    await writer.append(episodeEvent(0, 0))
    await writer.close()
    fake.options = {
      fault: ({ method }) => (method === 'GET' ? undefined : { status: 403, code: 'AccessDenied' }),
    }
    expect(await membersOf(indexOn(prefix), 'one', 0)).toEqual([0])
    await expect(indexOn(prefix).claim(runRecord('two'), { expect: 'new' })).rejects.toThrow(
      'the credentials lack the right to do that (403 AccessDenied (by the fake))',
    )
  })
})

/** The fault at the first try of each request that the test picks. */
function onceEach(fault: Fault, picks: (request: FakeRequest) => boolean) {
  const met = new Set<string>()
  return (request: FakeRequest) => {
    const name = `${request.method} ${request.key} ${request.isList}`
    if (!picks(request) || met.has(name)) return undefined
    met.add(name)
    return fault
  }
}

test.each<[string, Fault]>([
  ['503 SlowDown', { status: 503, code: 'SlowDown', retryAfter: 0 }],
  ['500', { status: 500, code: 'InternalError', retryAfter: 0 }],
  [
    'F61: 409 on a racing create',
    { status: 409, code: 'ConditionalRequestConflict', retryAfter: 0 },
  ],
  ['a dropped connection', 'reset'],
  ['an answer that was lost after the work was done', 'lost-answer'],
])('%s, at the first try of every request, loses and repeats nothing', async (_, fault) => {
  const prefix = freshPrefix()
  fake.options = { fault: onceEach(fault, () => true) }
  const reports: RequestReport[] = []
  const index = indexOn(prefix, { onRequest: (report) => reports.push(report) })
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  for (const step of [0, 1]) {
    for (const event of stepEvents(step, 4)) await writer.append(event)
    await writer.flush()
  }
  await writer.close()
  expect(await membersOf(index, 'one', 0)).toEqual([0, 1, 2, 3])
  expect((await index.run('one')).steps.map(({ step }) => step)).toEqual([0, 1])
  for await (const damage of index.upkeep?.check('one') ?? []) expect.unreachable(damage.what)
  expect(reports.some(({ attempt }) => attempt === 2)).toBe(true)
})

test('a stalled put is given up in time and sent again', async () => {
  const prefix = freshPrefix()
  fake.options = {
    fault: onceEach('stall', ({ method, key }) => method === 'PUT' && key.includes('step-')),
  }
  const index = indexOn(prefix, { timeoutMs: 1_000 })
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  for (const event of stepEvents(0, 4)) await writer.append(event)
  await writer.flush()
  expect(await membersOf(index, 'one', 0)).toEqual([0, 1, 2, 3])
})

test('F66: with every tenth put stalled nothing is lost', async () => {
  const prefix = freshPrefix()
  let puts = 0
  const stalled: string[] = []
  fake.options = {
    fault: ({ method, key }) => {
      if (method !== 'PUT' || (puts += 1) % 10 !== 0) return undefined
      stalled.push(key)
      return 'stall'
    },
  }
  const index = indexOn(prefix, { timeoutMs: 1_000 })
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  const steps = 12
  for (let step = 0; step < steps; step += 1) {
    for (const event of stepEvents(step, 3)) await writer.append(event)
    await writer.flush()
  }
  await writer.close()
  expect(stalled.length).toBeGreaterThanOrEqual(Math.floor((steps * 4) / 10))
  for (let step = 0; step < steps; step += 1)
    expect(await membersOf(index, 'one', step)).toEqual([0, 1, 2])
})

test('F66: while no put is answered at all, appends go on', async () => {
  const prefix = freshPrefix()
  const index = indexOn(prefix, { batchMs: 1 })
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  const stall = (key: string) => key.startsWith(`${prefix}/`)
  fake.options = {
    fault: ({ method, key }) => (method === 'PUT' && stall(key) ? 'stall' : undefined),
  }
  await writer.append(episodeEvent(0, 0))
  await expect
    .poll(() => fake.requests.some(({ key }) => key.includes(`${prefix}/one/outline/`)))
    .toBe(true)
  for (let member = 1; member < 100; member += 1) await writer.append(episodeEvent(0, member))
  fake.options = {}
  fake.dropConnections()
  await writer.close()
  expect(await membersOf(index, 'one', 0)).toHaveLength(100)
})

test('F64: no credential reaches an object, an error, a report or a log line, whatever goes wrong', async () => {
  const secrets = ['SENTINEL-SECRET', 'SENTINEL-TOKEN']
  const heard: unknown[] = []
  const hear = (...said: unknown[]) => void heard.push(said)
  const open = (prefix: string, options: Partial<S3RunIndexOptions> = {}) =>
    indexOn(prefix, {
      credentials: () => ({
        accessKeyId: 'a',
        secretAccessKey: 'SENTINEL-SECRET',
        sessionToken: 'SENTINEL-TOKEN',
      }),
      patienceMs: 0,
      onRequest: hear,
      logger: { debug: hear, info: hear, warn: hear, error: hear },
      ...options,
    })
  const faults: readonly Fault[] = [
    { status: 400, code: 'ExpiredToken' },
    { status: 403, code: 'SignatureDoesNotMatch' },
    { status: 403, code: 'InvalidAccessKeyId' },
    { status: 404, code: 'NoSuchBucket' },
    { status: 301, code: 'PermanentRedirect' },
    { status: 503, code: 'SlowDown' },
    'reset',
  ]
  const failures: unknown[] = []
  for (const fault of faults) {
    fake.options = { fault: () => fault }
    const index = open(freshPrefix())
    await index.run('one').catch((error: unknown) => failures.push(error))
    await index
      .claim(runRecord('one'), { expect: 'new' })
      .catch((error: unknown) => failures.push(error))
    fake.options = {}
    const writer = await index.claim(runRecord('one'), { expect: 'new' })
    await writer.append(episodeEvent(0, 0))
    fake.options = { fault: () => fault }
    await writer.flush().catch((error: unknown) => failures.push(error))
    fake.options = {}
    await writer.close()
  }
  expect(failures).toHaveLength(faults.length * 3)
  const told = inspect([failures, heard], {
    depth: Infinity,
    showHidden: true,
    maxStringLength: null,
    maxArrayLength: null,
  })
  const stored = [...fake.objects].map(
    ([key, { content }]) => `${key} ${content.toString('latin1')}`,
  )
  for (const secret of secrets) {
    expect(told).not.toContain(secret)
    expect(stored.filter((text) => text.includes(secret))).toEqual([])
  }
})

test('a store that is away for good fails the flush, which says what is missing; later it goes on', async () => {
  const prefix = freshPrefix()
  const index = indexOn(prefix, { patienceMs: 0 })
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  fake.options = {
    fault: ({ method }) => (method === 'PUT' ? { status: 503, code: 'SlowDown' } : undefined),
  }
  for (const event of stepEvents(0, 4)) await writer.append(event)
  await expect(writer.flush()).rejects.toThrow(
    /6 events of run "one" are not durable yet: s3:\/\/runs\/\d+: gave up PUT of ".*" after 1 attempt in 0 s; the last: 503 SlowDown/,
  )
  fake.options = {}
  await writer.close()
  expect(await membersOf(index, 'one', 0)).toEqual([0, 1, 2, 3])
})

test('somebody else’s blob in a writer’s place stops it', async () => {
  const prefix = freshPrefix()
  const index = indexOn(prefix)
  const writer = await index.claim(runRecord('one'), { expect: 'new' })
  const key = `${prefix}/one/log/0001-000000.jsonl`
  fake.objects.set(key, { content: Buffer.from('{}\n'), modified: new Date() })
  await writer.append({ type: 'step', step: 0, position: 0, totals: {} })
  await expect(writer.flush()).rejects.toThrow('exists with other content')
})

test('a listing that is cut off without saying how to go on is an error, not a short answer', async () => {
  const prefix = freshPrefix()
  const index = indexOn(prefix)
  for (const name of ['a', 'b', 'c'])
    await (await index.claim(runRecord(name), { expect: 'new' })).close()
  fake.options = { pageSize: 2, losesTokens: true }
  await expect(index.runs()[Symbol.asyncIterator]().next()).rejects.toThrow(
    'cut off and says not how to go on',
  )
})
