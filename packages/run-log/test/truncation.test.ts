import { TiltyardError, type EpisodeSummary, type RunIndex } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { indexOver, memoryBlobs, type MemoryBlobs } from './support/memory-blobs.ts'
import { all, call, episode, key, metrics, runRecord, score, step } from './support/small-run.ts'

/** A run of two acknowledged batches, step 0 and step 1: an episode in each, and one that is under way. */
async function wholeRun(growing: boolean): Promise<ReadonlyMap<string, Uint8Array>> {
  const blobs = memoryBlobs(growing)
  const writer = await indexOver(blobs).claim(runRecord(), { expect: 'new' })
  for (const number of [0, 1]) {
    await writer.append(episode({ step: number }))
    await writer.append(score({ step: number }, number))
    if (number === 0) await writer.append(call({ member: 1 }, 0))
    await writer.append(metrics(number))
    await writer.append(step(number))
    await writer.flush()
  }
  await writer.close()
  return blobs.content
}

/** As found long after the writer died. */
function leftBehind(growing: boolean, content: Map<string, Uint8Array>): MemoryBlobs {
  return Object.assign(memoryBlobs(growing, content), { age: 2 ** 40 })
}

interface Reading {
  readonly steps: readonly number[]
  readonly episodes: readonly EpisodeSummary[]
  /** Episodes that can't be read whole. */
  readonly damaged: readonly string[]
  readonly told: readonly string[]
}

async function readAll(index: RunIndex): Promise<Reading> {
  const details = await index.run('one')
  const episodes = await all(index.episodes('one'))
  const records = await Promise.all(episodes.map(({ key: at }) => index.episode('one', at)))
  return {
    steps: details.steps.map((event) => event.step),
    episodes,
    damaged: records.flatMap(({ damage }) => damage ?? []),
    told: (await all(index.upkeep?.check('one') ?? noDamage())).map(({ where }) => where),
  }
}

async function* noDamage(): AsyncGenerator<{ where: string }> {}

interface Cut {
  readonly name: string
  readonly content: Uint8Array
  readonly length: number
}

interface CutPromise {
  readonly what: string
  readonly holds: (found: Reading, whole: Reading, cut: Cut) => boolean
}

const equal = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
const isLog = ({ name }: Cut) => name.includes('/log/')
const isRecords = ({ name }: Cut) => name.endsWith('.gz')
const isTorn = ({ name, content, length }: Cut) =>
  name.endsWith('.jsonl') && length > 0 && content[length - 1] !== 0x0a

const promises: readonly CutPromise[] = [
  {
    what: 'what is shown was recorded',
    holds: ({ episodes }, whole) =>
      episodes.every((summary) => {
        const original = whole.episodes.find((it) => equal(it.key, summary.key))
        const { task, startedAt, reward = original?.reward, end = original?.end } = summary
        const { task: t, startedAt: s, reward: r, end: e } = original ?? {}
        return equal([task, startedAt, reward, end], [t, s, r, e])
      }),
  },
  {
    what: 'a torn line is told',
    holds: ({ told }, _, cut) => !isTorn(cut) || told.includes(cut.name),
  },
  {
    what: 'lists need no records, and a record that can’t be read says so',
    holds: ({ episodes, damaged, told }, whole, cut) =>
      !isRecords(cut) ||
      (equal(episodes, whole.episodes) &&
        damaged.length > 0 &&
        told.some((where) => where.startsWith(cut.name))),
  },
  {
    what: 'other records are whole',
    holds: ({ damaged }, _, cut) => isRecords(cut) || damaged.length === 0,
  },
  {
    what: 'the log and the episodes don’t harm each other',
    holds: ({ episodes, steps }, whole, cut) =>
      isLog(cut) ? equal(episodes, whole.episodes) : equal(steps, whole.steps),
  },
]

test.each([
  { blobs: 'blobs that grow', growing: true },
  { blobs: 'blobs that are written once', growing: false },
])(
  '$blobs, cut at every byte: what lies before is read, the rest is ignored and told',
  async ({ growing }) => {
    const content = await wholeRun(growing)
    const whole = await readAll(indexOver(leftBehind(growing, new Map(content))))
    expect(whole).toMatchObject({ steps: [0, 1], damaged: [], told: [] })
    expect(whole.episodes).toHaveLength(3)
    const broken: string[] = []
    let cuts = 0
    for (const [name, bytes] of content) {
      if (!/\/(?:log|outline|train)\//.test(name)) continue
      for (let length = 0; length < bytes.length; length += 1) {
        const cut = new Map(content).set(name, bytes.subarray(0, length))
        const found = await readAll(indexOver(leftBehind(growing, cut)))
        for (const { what, holds } of promises)
          if (!holds(found, whole, { name, content: bytes, length }))
            broken.push(`${name} cut at ${length}: ${what}`)
        cuts += 1
      }
    }
    expect(broken).toEqual([])
    expect(cuts).toBeGreaterThan(500)
  },
)

test('F68: a run whose claims are lost is listed with what is wrong, not passed over', async () => {
  const blobs = new Map(await wholeRun(true))
  const claim = [...blobs.keys()].find((name) => name.includes('/claims/'))!
  blobs.delete(claim)
  const index = indexOver(memoryBlobs(true, blobs))
  const damage = 'one/claims: no claim is there, and without one nothing can be read'
  expect(await all(index.runs())).toEqual([{ name: 'one', status: 'interrupted', damage }])
  await expect(index.run('one')).rejects.toSatisfy(
    (error) => TiltyardError.is(error, 'DATA') && error.message.includes(damage),
  )
  for (const [wanted, why] of [
    ['new', 'exists'],
    ['resume', 'has lost its claims'],
  ] as const)
    await expect(index.claim(runRecord(), { expect: wanted })).rejects.toThrow(why)
  // A folder without a log is no run.
  for (const name of blobs.keys()) if (name.includes('/log/')) blobs.delete(name)
  expect(await all(index.runs())).toEqual([])
})

test('F68: a cut or foreign claim damages its run alone', async () => {
  const whole = await wholeRun(true)
  const claim = [...whole.keys()].find((name) => name.includes('/claims/'))!
  const healthy = [...(await wholeRun(true))].map(
    ([name, content]) => [name.replace(/^one\//, 'two/'), content] as const,
  )
  for (const content of [Buffer.alloc(0), whole.get(claim)!.subarray(0, 40), Buffer.from('{}')]) {
    const blobs = new Map([...whole, ...healthy])
    const index = indexOver(memoryBlobs(true, blobs.set(claim, content)))
    const [one, two] = await all(index.runs())
    expect(one).toMatchObject({ name: 'one', status: 'interrupted' })
    expect(one?.damage).toContain('one/claims/0001.json: unreadable claim')
    expect(two).toMatchObject({ name: 'two', status: 'interrupted', step: 1 })
    expect(two).not.toHaveProperty('damage')
    await expect(index.run('one')).rejects.toSatisfy((error) => TiltyardError.is(error, 'DATA'))
    expect(await all(index.episodes('one'))).toHaveLength(3)
    expect((await index.episode('one', key())).episode).toBeDefined()
  }
})
