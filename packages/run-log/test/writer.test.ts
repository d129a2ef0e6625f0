import { silentLogger, type RunEvent, type RunWriter } from '@tiltyard/core'
import { describe, expect, test, vi } from 'vitest'

import { blobRunIndex } from '../src/index.ts'
import { flushOnly, indexOver, memoryBlobs, type MemoryBlobs } from './support/memory-blobs.ts'
import { all, call, episode, metrics, runRecord, score, step } from './support/small-run.ts'

const events: readonly RunEvent[] = [
  call({ step: 0 }, 0),
  episode({ step: 0 }),
  score({ step: 0 }, 1),
  episode({ step: 1 }),
  {
    type: 'failure',
    key: { split: 'train', step: 1, group: 0, member: 0, attempt: 0 },
    phase: 'score',
    error: { name: 'Error', message: 'once' },
  },
  metrics(0),
  step(0),
]

const claimNew = (blobs: MemoryBlobs, pace = {}) =>
  indexOver(blobs, pace).claim(runRecord(), { expect: 'new' })

async function appendAll(writer: RunWriter): Promise<void> {
  for (const event of events) await writer.append(event)
}

/** What was written of the events, without what differs from claim to claim. */
function written({ content }: MemoryBlobs): ReadonlyMap<string, string> {
  return new Map(
    [...content]
      .filter(([key]) => !/\/(?:claims|alive)\//.test(key))
      .map(([key, bytes]) => [key, Buffer.from(bytes).toString('base64')]),
  )
}

/** Counts writes, signs of life apart; the one with the number `failing` fails. */
function countWrites(blobs: MemoryBlobs, failing = -1): () => number {
  let writes = 0
  blobs.beforeWrite = (key) => {
    if (key.includes('/alive/')) return
    writes += 1
    if (writes === failing + 1) throw new Error('the store is away')
  }
  return () => writes
}

describe.each([
  { blobs: 'blobs that grow', growing: true },
  { blobs: 'blobs that are written once', growing: false },
])('over $blobs', ({ growing }) => {
  test('whichever write fails, the next flush writes the batch whole and once', async () => {
    const healthy = memoryBlobs(growing)
    const first = await claimNew(healthy)
    await appendAll(first)
    const writes = countWrites(healthy)
    await first.flush()
    expect(writes()).toBeGreaterThan(5)

    for (let failing = 0; failing < writes(); failing += 1) {
      const blobs = memoryBlobs(growing)
      const writer = await claimNew(blobs)
      await appendAll(writer)
      countWrites(blobs, failing)
      const error = await writer.flush().then(
        () => new Error('the failure was not told'),
        (reason: Error) => reason,
      )
      expect(error).toMatchObject({ code: 'STORE' })
      expect(error.message).toContain('7 events of run "one" are not durable yet')
      await expect(writer.append(step(1))).rejects.toBe(error)
      await writer.flush()
      await writer.append(step(0))
      expect(written(blobs)).toEqual(written(healthy))
    }
  })

  test('a failure while closing is told, and the writer lets go', async () => {
    const blobs = memoryBlobs(growing)
    const writer = await claimNew(blobs)
    await writer.append(step(0))
    blobs.beforeWrite = () => {
      throw new Error('the store is away')
    }
    await expect(writer.close()).rejects.toThrow('1 events of run "one" are not durable yet')
    await expect(writer.append(step(1))).rejects.toThrow('is closed')
  })

  test('what a fenced writer had not made durable is told, not written', async () => {
    const blobs = memoryBlobs(growing)
    const older = await claimNew(blobs)
    await older.append(episode())
    await indexOver(blobs).claim(runRecord(), { expect: 'resume', takeOver: true })
    const before = written(blobs)
    await expect(older.close()).rejects.toThrow('run "one" was taken by its writer 2')
    expect(written(blobs)).toEqual(before)
    const idle = await indexOver(blobs).claim(runRecord(), { expect: 'resume', takeOver: true })
    await indexOver(blobs).claim(runRecord(), { expect: 'resume', takeOver: true })
    await idle.close()
  })
})

test('without a flush a batch is written after a time, or once it is large', async () => {
  const timed = memoryBlobs(true)
  await (await claimNew(timed, { batchMs: 1 })).append(episode())
  await expect.poll(() => all(indexOver(timed).episodes('one'))).toHaveLength(1)

  const sized = memoryBlobs(true)
  const writer = await claimNew(sized, { batchSize: 4_000 })
  for (let member = 0; member < 30; member += 1) await writer.append(episode({ member }))
  await expect
    .poll(async () => (await all(indexOver(sized).episodes('one'))).length)
    .toBeGreaterThan(20)
})

test('a stuck store delays appends only once the buffer is full', async () => {
  const blobs = memoryBlobs(true)
  const writer = await claimNew(blobs, { batchSize: 1_000, bufferSize: 20_000 })
  const stuck = new AbortController()
  blobs.beforeWrite = () => once(stuck.signal)
  let member = 0
  let waits = false
  while (!waits) {
    const append = writer.append(episode({ member }))
    member += 1
    waits = (await Promise.race([append, turnOfTheLoop().then(() => 'waits')])) === 'waits'
  }
  expect(member).toBeGreaterThan(20)
  blobs.beforeWrite = () => {}
  stuck.abort()
  await writer.flush()
  expect(await all(indexOver(blobs).episodes('one'))).toHaveLength(member)
})

function once(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

function turnOfTheLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

test('a writer gives signs of life until it is closed', async () => {
  const blobs = memoryBlobs(true)
  const signs: string[] = []
  blobs.beforeWrite = (key) => {
    if (key.includes('/alive/')) signs.push(key)
  }
  vi.useFakeTimers()
  try {
    const writer = await claimNew(blobs, { signOfLifeMs: 1_000 })
    await vi.advanceTimersByTimeAsync(3_500)
    expect(signs).toEqual(Array(4).fill('one/alive/0001'))
    await writer.close()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(signs).toHaveLength(4)
  } finally {
    vi.useRealTimers()
  }
})

test('closing calls off a sign of life that is stuck, and nothing is under way afterwards', async () => {
  const blobs = memoryBlobs(true)
  let underWay = 0
  blobs.replace = async (key, _, signal) => {
    if (!key.includes('/alive/')) return
    underWay += 1
    await once(signal!)
    underWay -= 1
    throw signal?.reason
  }
  const warnings: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) }
  const index = blobRunIndex({ blobs, pace: flushOnly, logger })
  const writer = await index.claim(runRecord(), { expect: 'new' })
  expect(underWay).toBe(1)
  await writer.close()
  expect(underWay).toBe(0)
  expect(warnings).toEqual([])
})

test('signs of life don’t pile up while the store is slow', async () => {
  const blobs = memoryBlobs(true)
  let given = 0
  blobs.replace = (key, _, signal) => {
    given += Number(key.includes('/alive/'))
    return key.includes('/alive/') ? once(signal!) : Promise.resolve()
  }
  vi.useFakeTimers()
  try {
    const writer = await claimNew(blobs, { signOfLifeMs: 1_000 })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(given).toBe(1)
    await writer.close()
  } finally {
    vi.useRealTimers()
  }
})

test('a run whose writer is gone is interrupted, and may be resumed at once', async () => {
  const blobs = memoryBlobs(true)
  const writer = await claimNew(blobs)
  await writer.append(step(3))
  await writer.flush()
  const [running] = await all(indexOver(blobs).runs())
  expect(running).toMatchObject({ status: 'running', step: 3 })

  const claim = 'one/claims/0001.json'
  const original = JSON.parse(String(blobs.content.get(claim))) as { process: { pid: number } }
  const withProcess = (process: object) =>
    blobs.content.set(claim, Buffer.from(JSON.stringify({ ...original, process })))
  const statusNow = async () => (await indexOver(blobs).run('one')).summary.status

  // A process of this machine that doesn't exist.
  withProcess({ ...original.process, pid: 2 ** 22 + 1 })
  expect(await statusNow()).toBe('interrupted')
  // One of another machine, by its signs of life.
  withProcess({ pid: 1, machine: 'elsewhere' })
  expect(await statusNow()).toBe('running')
  await expect(indexOver(blobs).claim(runRecord(), { expect: 'resume' })).rejects.toThrow(
    /"one" is being written by another process: writer 1, process 1, since .*, last sign of life 0 s ago/,
  )
  blobs.age = 7 * 3_600_000
  expect(await statusNow()).toBe('interrupted')
  const next = await indexOver(blobs).claim(runRecord(), { expect: 'resume' })
  expect(next.epoch).toBe(2)
  await expect(indexOver(memoryBlobs(true)).claim(runRecord(), { expect: 'join' })).rejects.toThrow(
    'unknown run "one"',
  )
})

test('a store that doesn’t list what was just written is told, not asked for ever', async () => {
  const blobs = memoryBlobs(true)
  await claimNew(blobs)
  const lagging = { ...blobs, list: async () => ({ blobs: [], folders: [] }) }
  await expect(indexOver(lagging).claim(runRecord(), { expect: 'new' })).rejects.toThrow(
    "memory doesn't list what was just written",
  )
})
