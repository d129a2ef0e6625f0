import { randomStream } from '@tiltyard/core'
import { s3RunIndex, type RequestReport } from '@tiltyard/run-index-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { membersOf, runRecord, stepEvents } from './events.ts'
import { startFakeS3, type FakeS3, type Fault } from './fake-s3.ts'

const PUTS = 10_000
const FAULT_SHARE = 0.05
const WRITERS = 16
const EPISODES_PER_STEP = 3
/** Log, outline, lines and records for each step, and now and then a joined log and outline. */
const STEPS = Math.ceil(PUTS / WRITERS / 4)

const faults: readonly Fault[] = [
  { status: 503, code: 'SlowDown', retryAfter: 0 },
  { status: 500, code: 'InternalError', retryAfter: 0 },
  { status: 409, code: 'ConditionalRequestConflict', retryAfter: 0 },
  'reset',
  'lost-answer',
]

let fake: FakeS3
beforeAll(async () => {
  const random = randomStream(1, 'faults')
  fake = await startFakeS3({
    fault: ({ method }) =>
      method === 'PUT' && random.next() < FAULT_SHARE
        ? faults[random.integer(faults.length)]
        : undefined,
  })
})
afterAll(() => fake.stop())

test(`${PUTS} puts of ${WRITERS} writers at once, one in ${1 / FAULT_SHARE} of them with a fault, lose nothing`, async () => {
  const reports: RequestReport[] = []
  const index = s3RunIndex({
    bucket: fake.bucket,
    endpoint: fake.endpoint,
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    onRequest: (report) => reports.push(report),
  })
  const runs = Array.from({ length: WRITERS }, (_, writer) => `run-${writer}`)
  await Promise.all(
    runs.map(async (run) => {
      const writer = await index.claim(runRecord(run), { expect: 'new' })
      for (let step = 0; step < STEPS; step += 1) {
        for (const event of stepEvents(step, EPISODES_PER_STEP)) await writer.append(event)
        await writer.flush()
      }
      await writer.close()
    }),
  )
  const puts = reports.filter(({ method }) => method === 'PUT')
  expect(puts.length).toBeGreaterThan(PUTS)
  expect(puts.filter(({ attempt }) => attempt > 1).length).toBeGreaterThan(PUTS * FAULT_SHARE * 0.8)

  const members = Array.from({ length: EPISODES_PER_STEP }, (_, member) => member)
  for (const run of runs) {
    expect((await index.run(run)).steps).toHaveLength(STEPS)
    for (const step of [0, Math.floor(STEPS / 2), STEPS - 1])
      expect(await membersOf(index, run, step)).toEqual(members)
    let episodes = 0
    for await (const { key } of index.episodes(run)) episodes += Number(key.member >= 0)
    expect(episodes).toBe(STEPS * EPISODES_PER_STEP)
  }
})
