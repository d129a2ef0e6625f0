import {
  endName,
  type EndReason,
  type EpisodeFilter,
  type EpisodeSummary,
  type RunEvent,
} from '@tiltyard/core'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { indexOver, memoryBlobs, type MemoryBlobs } from './support/memory-blobs.ts'
import { all, call, episode, key, metrics, runRecord, score, step } from './support/small-run.ts'

const STEPS = 50

/** A run of many steps, one batch each; step n plays task `t<n % 10>` with reward n. */
async function longRun(growing: boolean): Promise<MemoryBlobs> {
  const blobs = memoryBlobs(growing)
  const writer = await indexOver(blobs).claim(runRecord(), { expect: 'new' })
  for (let number = 0; number < STEPS; number += 1) {
    await writer.append(episode({ step: number }, `t${number % 10}`))
    await writer.append(score({ step: number }, number))
    await writer.append(metrics(number))
    await writer.append(step(number))
    await writer.flush()
  }
  await writer.close()
  blobs.reads.length = 0
  return blobs
}

/** Steps whose blobs were read. */
function stepsRead({ reads }: MemoryBlobs): readonly number[] {
  const steps = reads.flatMap((name) => /step-(\d+)/.exec(name)?.[1] ?? []).map(Number)
  return [...new Set(steps)].toSorted((a, b) => a - b)
}

describe.each([
  { blobs: 'blobs that grow', growing: true },
  { blobs: 'blobs that are written once', growing: false },
])('over $blobs', ({ growing }) => {
  test('a question reads the steps that can hold its answer, and no others', async () => {
    const blobs = await longRun(growing)
    const index = indexOver(blobs)
    const read = async (ask: () => Promise<unknown>) => {
      blobs.reads.length = 0
      await ask()
      return stepsRead(blobs)
    }
    expect(await read(() => all(index.runs()))).toEqual([])
    expect(await read(() => index.run('one'))).toEqual([])
    expect(await read(() => all(index.episodes('one', { step: 7 })))).toEqual([7])
    expect(await read(() => all(index.groups('one', { step: 7 })))).toEqual([7])
    expect(await read(() => index.episode('one', key({ step: 9 })))).toEqual([9])
    expect(await read(() => all(index.episodes('one', { task: 't3' })))).toEqual([
      3, 13, 23, 33, 43,
    ])
    expect(await read(() => all(index.episodes('one', { task: 'none' })))).toEqual([])
    expect(await read(() => all(index.episodes('one', { minReward: 48 })))).toEqual([48, 49])
    expect(await read(() => all(index.episodes('one', { maxReward: 1 })))).toEqual([0, 1])
    expect(await read(() => all(index.episodes('one', { end: 'turns' })))).toEqual([])
  })

  test('lists read no records', async () => {
    const blobs = await longRun(growing)
    await all(indexOver(blobs).episodes('one'))
    await all(indexOver(blobs).groups('one'))
    expect(blobs.reads.filter((name) => name.endsWith('.gz'))).toEqual([])
  })

  test('a damaged outline costs speed, not answers', async () => {
    const blobs = await longRun(growing)
    for (const name of blobs.content.keys())
      if (name.includes('/outline/')) blobs.content.set(name, Buffer.from('gibberish\n'))
    const found = await all(indexOver(blobs).episodes('one', { task: 't3' }))
    expect(found).toHaveLength(STEPS / 10)
  })
})

test('where blobs are written once, a long log takes few reads, and the single batches may go', async () => {
  const blobs = await longRun(false)
  const index = indexOver(blobs)
  const before = await index.run('one')
  expect(before.steps).toHaveLength(STEPS)
  const logReads = () => new Set(blobs.reads.filter((name) => name.includes('/log/'))).size
  // 32 batches in one blob, the 18 after them and the end of the run.
  expect(logReads()).toBe(1 + (STEPS - 32) + 1)
  const { blobs: removed } = await index.upkeep!.collect('one')
  expect(removed).toBe(64)
  expect(await index.run('one')).toEqual(before)
  expect(await all(index.episodes('one', { task: 't3' }))).toHaveLength(STEPS / 10)
})

test('a filter that most of a step meets finds them all', async () => {
  const blobs = memoryBlobs(true)
  const writer = await indexOver(blobs).claim(runRecord(), { expect: 'new' })
  for (let member = 0; member < 50; member += 1) {
    await writer.append(episode({ member }))
    await writer.append(score({ member }, member))
  }
  await writer.close()
  const found = (filter: EpisodeFilter) => all(indexOver(blobs).episodes('one', filter))
  expect(await found({ end: 'completed' })).toHaveLength(50)
  expect(await found({ task: 't', minReward: 20 })).toHaveLength(30)
  expect(await found({ task: 't', end: 'turns' })).toEqual([])
})

const names = ['t', 'a "quoted" one', 'completed', 'g1/m0/a0', '"reward":{"reward":5}', 'ünï\n🏇']
const ends: readonly EndReason[] = [
  { kind: 'completed' },
  { kind: 'cut', by: 'turns' },
  { kind: 'failed', phase: 'tool', error: { name: 'E', message: 'by "turns"' } },
]
const anyEvents = fc.array(
  fc.record({
    kind: fc.constantFrom('play', 'score', 'unscored', 'train', 'call', 'resume'),
    step: fc.nat(1),
    group: fc.nat(2),
    task: fc.constantFrom(...names),
    end: fc.constantFrom(...ends),
    reward: fc.constantFrom(-1, 0, 0.5, 1e-9, 5),
  }),
  { maxLength: 40 },
)
const anyFilter = fc.record(
  {
    step: fc.nat(2),
    group: fc.nat(12),
    task: fc.constantFrom(...names, 'none', ''),
    end: fc.constantFrom('completed', 'turns', 'failed', 'unfinished', 'replies'),
    minReward: fc.constantFrom(-1, 0, 1e-9, 3),
    maxReward: fc.constantFrom(-2, 0, 1e-9, 5),
    trained: fc.boolean(),
  },
  { requiredKeys: [] },
)

test('a filter finds what reading everything and comparing finds', async () => {
  await fc.assert(
    fc.asyncProperty(anyEvents, fc.boolean(), anyFilter, async (drawn, growing, filter) => {
      const blobs = memoryBlobs(growing)
      let writer = await indexOver(blobs).claim(runRecord(), { expect: 'new' })
      for (const { kind, step: at, group, task, end, reward } of drawn) {
        const parts = { step: at, group: group * 5 }
        if (kind === 'play') await writer.append({ ...episode(parts, task), end })
        if (kind === 'call') await writer.append({ ...call(parts, 0), task })
        if (kind === 'score') {
          const named = { [task]: { value: reward } }
          await writer.append({ ...score(parts, reward), scores: named } as RunEvent)
        }
        if (kind === 'train') {
          const untrained = reward > 0 ? {} : { untrained: task }
          const event = { type: 'training', key: key(parts), step: parts.step } as const
          await writer.append({ ...event, ...untrained, data: [] })
        }
        if (kind === 'unscored') {
          const unscored = { reward: { unscored: task } }
          await writer.append({ ...score(parts, 0), ...unscored })
        }
        if (kind === 'resume') {
          await writer.close()
          const options = { expect: 'resume', resumeAfterStep: at - 1 } as const
          writer = await indexOver(blobs).claim(runRecord(), options)
        }
      }
      await writer.close()
      const index = indexOver(blobs)
      const everything = await all(index.episodes('one'))
      const wanted = everything.filter((summary) => isMatch(summary, filter))
      expect(await all(index.episodes('one', filter))).toEqual(wanted)
      const records = await all(index.records!('one', filter))
      expect(records.map(({ summary }) => summary)).toEqual(wanted)
      for (const summary of wanted)
        expect((await index.episode('one', summary.key)).summary).toEqual(summary)
    }),
    { seed: 7, numRuns: 100 },
  )
})

function isMatch(
  { key: at, task, end, reward, trained }: EpisodeSummary,
  filter: EpisodeFilter,
): boolean {
  const value = reward !== undefined && 'reward' in reward ? reward.reward : Number.NaN
  const { minReward = -Infinity, maxReward = Infinity } = filter
  return (
    (filter.step ?? at.step) === at.step &&
    (filter.group ?? at.group) === at.group &&
    (filter.task ?? task) === task &&
    (filter.trained === undefined ||
      (trained !== undefined && filter.trained === (trained === true))) &&
    (filter.end ?? '') ===
      (filter.end === undefined ? '' : end === undefined ? 'unfinished' : endName(end)) &&
    ((filter.minReward === undefined && filter.maxReward === undefined) ||
      (value >= minReward && value <= maxReward))
  )
}
