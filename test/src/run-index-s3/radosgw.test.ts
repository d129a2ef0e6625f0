import { TiltyardError, type RunIndex } from '@tiltyard/core'
import { s3RunIndex, type RequestReport, type S3RunIndexOptions } from '@tiltyard/run-index-s3'
import { registerCases, runIndexCases } from '@tiltyard/testkit'
import { Agent, fetch as undiciFetch } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'
import { membersOf, runRecord, stepEvents } from './events.ts'
import { startRadosgw, type Radosgw } from './radosgw.ts'

const RACERS = 16

describeWith(program('radosgw'), 'a Ceph object gateway', () => {
  let server: Radosgw
  beforeAll(async () => {
    server = await startRadosgw()
  })
  afterAll(() => server.stop())

  let prefixes = 0
  const freshPrefix = () => `runs of ä/${(prefixes += 1)}`

  const indexOn = (prefix: string, options: Partial<S3RunIndexOptions> = {}): RunIndex => {
    const { bucket, endpoint, credentials } = server
    return s3RunIndex({ bucket, endpoint, credentials, prefix, ...options })
  }

  describe('keeps the promises of a run index', () => {
    const created = new Map<RunIndex, string>()
    registerCases(
      test,
      runIndexCases({
        async create() {
          const prefix = freshPrefix()
          const index = indexOn(prefix)
          created.set(index, prefix)
          return index
        },
        reopen: async (index) => indexOn(created.get(index) ?? ''),
      }),
    )
  })

  test('a bucket is reached by path and by host', async () => {
    const prefix = freshPrefix()
    const writer = await indexOn(prefix).claim(runRecord('one'), { expect: 'new' })
    for (const event of stepEvents(0, 3)) await writer.append(event)
    await writer.close()
    // No name server knows runs.localhost.
    const dispatcher = new Agent({
      connect: { lookup: (_, __, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
    })
    const hosts = new Set<string>()
    const fetch: typeof globalThis.fetch = async (url, init) => {
      const address = new URL(url instanceof Request ? url.url : url)
      hosts.add(address.hostname)
      return undiciFetch(address, { ...(init as object), dispatcher })
    }
    const byHost = indexOn(prefix, { addressing: 'virtual-host', fetch })
    expect(await membersOf(byHost, 'one', 0)).toEqual([0, 1, 2])
    expect((await byHost.claim(runRecord('one'), { expect: 'resume' })).epoch).toBe(2)
    expect([...hosts]).toEqual(['runs.localhost'])
    await byHost.close()
    await dispatcher.close()
  })

  test(`of ${RACERS} processes that race for one run one wins, and all write their own`, async () => {
    const prefix = freshPrefix()
    const indexes = Array.from({ length: RACERS }, () => indexOn(prefix))
    const race = await Promise.allSettled(
      indexes.map((index) => index.claim(runRecord('race'), { expect: 'new' })),
    )
    const losers = race.filter((result) => result.status === 'rejected')
    expect(losers).toHaveLength(RACERS - 1)
    expect(losers.every(({ reason }) => TiltyardError.is(reason, 'STATE'))).toBe(true)

    const names = indexes.map((_, racer) => `run-${racer}`)
    await Promise.all(
      indexes.map(async (index, racer) => {
        const writer = await index.claim(runRecord(names[racer]!), { expect: 'new' })
        for (let step = 0; step < 5; step += 1) {
          for (const event of stepEvents(step, racer + 1)) await writer.append(event)
          await writer.flush()
        }
      }),
    )
    const reader = indexOn(prefix)
    for (const [racer, name] of names.entries())
      expect(await membersOf(reader, name, 4)).toHaveLength(racer + 1)
  })

  test('credentials may come from a function; wrong ones are told in words', async () => {
    const asked = indexOn(freshPrefix(), { credentials: async () => server.credentials })
    expect((await asked.claim(runRecord('one'), { expect: 'new' })).epoch).toBe(1)
    const { accessKeyId } = server.credentials
    const wrong = indexOn('', { credentials: { accessKeyId, secretAccessKey: 'not this one' } })
    const first = wrong.runs()[Symbol.asyncIterator]()
    await expect(first.next()).rejects.toThrow(
      'the secret key, or the region, is not the right one',
    )
    const elsewhere = indexOn('', { bucket: 'no-such-bucket' })
    await expect(elsewhere.run('one')).rejects.toThrow('the bucket does not exist; create it first')
  })

  test('a step costs few requests to write and to read', async () => {
    const prefix = freshPrefix()
    const reports: RequestReport[] = []
    const index = indexOn(prefix, { onRequest: (report) => reports.push(report) })
    const writer = await index.claim(runRecord('one'), { expect: 'new' })
    const steps = 100
    const requests = async (work: () => Promise<unknown>) => {
      reports.length = 0
      await work()
      return reports.filter(({ key }) => !key.includes('/alive/')).length
    }
    const written = await requests(async () => {
      for (let step = 0; step < steps; step += 1) {
        for (const event of stepEvents(step, 10)) await writer.append(event)
        await writer.flush()
      }
    })
    await writer.close()
    // Outline, records, lines, log, and a look for a newer writer; every 32 steps two joined blobs.
    expect(written).toBe(steps * 5 + 2 * Math.floor(steps / 32))
    const key = { split: 'train', step: 50, group: 0, member: 3, attempt: 0 } as const
    expect(await requests(() => membersOf(index, 'one', 50))).toBeLessThanOrEqual(5)
    expect(await requests(() => index.episode('one', key))).toBeLessThanOrEqual(6)
    expect(await requests(() => index.run('one'))).toBeLessThanOrEqual(15)
  })
})
