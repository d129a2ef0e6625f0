import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { TiltyardError, type RunIndex } from '@tiltyard/core'
import { s3RunIndex, type RequestReport, type S3RunIndexOptions } from '@tiltyard/run-index-s3'
import { registerCases, runIndexCases } from '@tiltyard/testkit'
import { Agent, fetch as undiciFetch } from 'undici'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { describeWith, program } from '../../support/machine.ts'
import { run } from '../../support/run.ts'
import { membersOf, runRecord, stepEvents } from './events.ts'
import { startRadosgw, type Radosgw } from './radosgw.ts'

const RACERS = 16

const commandLine = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))

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

  test(`of ${RACERS} writers that race for one run one wins, and all write their own`, async () => {
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
    const index = indexOn(prefix, {
      // No batch is written because time passes.
      batchMs: 3_600_000,
      onRequest: (report) => reports.push(report),
    })
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

  test('the command line lists, shows, exports and tidies runs in a bucket', async () => {
    const prefix = freshPrefix()
    const writer = await indexOn(prefix).claim(runRecord('desk'), { expect: 'new' })
    for (const step of [0, 1]) for (const event of stepEvents(step, 3)) await writer.append(event)
    await writer.append({ type: 'end', status: 'completed', step: 1, at: 1 })
    await writer.close()

    const folder = await mkdtemp(join(tmpdir(), 'tiltyard-bucket-'))
    const index = async (
      args: readonly string[],
      { place = `s3://${server.bucket}/${prefix}`, env = {} } = {},
    ) =>
      run(process.execPath, [commandLine, 'index', ...args, '--index', place], {
        cwd: folder,
        env: {
          AWS_ENDPOINT_URL: server.endpoint,
          AWS_ACCESS_KEY_ID: server.credentials.accessKeyId,
          AWS_SECRET_ACCESS_KEY: server.credentials.secretAccessKey,
          ...env,
        },
      })
    const json = async (...args: readonly string[]): Promise<unknown> =>
      JSON.parse((await index([...args, '--json'])).stdout)
    try {
      expect(await json('ls')).toMatchObject([{ name: 'desk', status: 'completed', step: 1 }])
      const shown = (await json('show', 'desk', '--step', '1', '--task', 'task-2')) as unknown[]
      expect(shown).toMatchObject([{ key: { step: 1, member: 2 }, task: 'task-2' }])
      expect(await json('show', 'desk', 'train/step-0001/g0/m2/a0')).toMatchObject({
        episode: { messages: [{ content: 'episode 2 of step 1' }] },
      })
      expect((await index(['metrics', 'desk'])).stdout).toContain('train step 1\n  loss  0.500000')
      const files = await json('export', 'desk', '--out', 'tables', '--table', 'episodes')
      expect(files).toMatchObject({ files: [{ rows: 6 }] })
      expect(await json('gc', 'desk', '--dry-run')).toEqual({ blobs: 0, bytes: 0 })

      const wrong = await index(['ls'], { env: { AWS_SECRET_ACCESS_KEY: 'SENTINEL' } })
      expect(wrong.stderr).toContain('the secret key, or the region, is not the right one')
      expect([wrong.code, wrong.stderr.includes('SENTINEL')]).toEqual([1, false])
      const nowhere = await index(['ls'], { place: 's3://no-such-bucket/runs' })
      expect(nowhere.stderr).toContain('the bucket does not exist; create it first')
      const unset = await index(['ls'], { env: { AWS_ACCESS_KEY_ID: '' } })
      expect(unset.stderr).toContain('set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
      expect([nowhere.code, unset.code]).toEqual([1, 2])
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
