import assert from 'node:assert/strict'

import { episodeId, type EpisodeFilter, type RunEvent } from '@tiltyard/core'

import type { ConformanceCase } from '../cases.ts'
import {
  callEvent,
  episodeEvent,
  episodeKey,
  scoreEvent,
  stepOfEvents,
  trainingEvent,
} from './events.ts'
import { all, record, type RunIndexPromise } from './fixture.ts'

/** Lists, their order and filters. */
export function listCases(promise: RunIndexPromise): readonly ConformanceCase[] {
  return [
    promise('an empty index lists nothing', async ({ index, other }) => {
      assert.equal(index.specVersion, 'run-index/1')
      assert.notEqual(index.name, '')
      assert.deepEqual(await all(other.runs()), [])
    }),

    promise('runs are in order of name', async ({ claim, other }) => {
      for (const name of ['b', 'a', 'C']) await claim(name)
      const names = (await all(other.runs())).map(({ name }) => name)
      assert.deepEqual(names, ['C', 'a', 'b'])
    }),

    promise('episodes are in order of number, not of text or of arrival', async (bench) => {
      const writer = await bench.claim('one')
      const ids = [
        'train/step-0002/g0/m0/a0',
        'train/step-0010/g2/m0/a0',
        'train/step-0010/g2/m10/a0',
        'train/step-0010/g10/m9/a0',
        'train/step-0010/g10/m9/a1',
        'train/step-9999/g0/m0/a0',
        'train/step-10000/g0/m0/a0',
        'eval/step-0001/g0/m0/a0',
        'eval/B/step-0000/g0/m0/a0',
        'eval/a/step-0009/g0/m0/a0',
        'eval/a/step-0010/g0/m0/a0',
      ]
      const keys = [
        { step: 2 },
        { step: 10, group: 2 },
        { step: 10, group: 2, member: 10 },
        { step: 10, group: 10, member: 9 },
        { step: 10, group: 10, member: 9, attempt: 1 },
        { step: 9_999 },
        { step: 10_000 },
        { split: 'eval', step: 1 },
        { split: 'eval', evaluation: 'B' },
        { split: 'eval', evaluation: 'a', step: 9 },
        { split: 'eval', evaluation: 'a', step: 10 },
      ] as const
      const shuffled = keys.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
      await record(
        writer,
        shuffled.map((key) => episodeEvent(key)),
      )
      const found = (await all(bench.other.episodes('one'))).map(({ key }) => episodeId(key))
      assert.deepEqual(found, ids)
      const groups = (await all(bench.other.groups('one'))).map(({ key }) => key.group)
      assert.deepEqual(groups, [0, 2, 10, 0, 0, 0, 0, 0, 0])
    }),

    promise('a summary tells what lists and plots need', async ({ claim, other }) => {
      const writer = await claim('one')
      await record(writer, [
        episodeEvent(),
        scoreEvent({}, 0.75),
        trainingEvent({}, 0, { advantage: -1.5 }),
        episodeEvent({ member: 1 }),
        scoreEvent({ member: 1 }, 'the judge was away'),
        trainingEvent({ member: 1 }, 0, { untrained: 'unscored', data: [] }),
      ])
      const [first, second] = await all(other.episodes('one'))
      assert.deepEqual(first, {
        key: episodeKey(),
        task: 'find-user',
        fingerprint: 'f0',
        end: { kind: 'completed' },
        scores: { answer: { value: 0.75 } },
        reward: { reward: 0.75 },
        advantage: -1.5,
        trained: true,
        replies: 2,
        calls: 1,
        promptTokens: 4,
        sampledTokens: 3,
        startedAt: 1_764_000_001_000,
        ms: 250.5,
      })
      assert.deepEqual(second?.scores, { answer: { unscored: 'the judge was away' } })
      assert.equal(second?.trained, 'unscored')
    }),

    promise('filters find what they ask for, alone and together', async ({ claim, other }) => {
      const writer = await claim('one')
      await record(writer, filterable())
      const found = async (filter: EpisodeFilter) =>
        (await all(other.episodes('one', filter))).map(({ key }) => episodeId(key))
      const expected: readonly (readonly [EpisodeFilter, number])[] = [
        [{}, 7],
        [{ split: 'eval' }, 1],
        [{ evaluation: 'smoke' }, 1],
        [{ evaluation: 'none' }, 0],
        [{ step: 1 }, 3],
        [{ step: 7 }, 0],
        [{ step: 0, group: 1 }, 2],
        [{ task: 'rare' }, 2],
        [{ task: 'rare', step: 0 }, 1],
        [{ task: 'unknown' }, 0],
        [{ end: 'turns' }, 1],
        [{ end: 'failed' }, 1],
        [{ end: 'unfinished' }, 1],
        [{ end: 'completed' }, 4],
        [{ minReward: 0.5 }, 2],
        [{ maxReward: 0 }, 2],
        [{ minReward: 0.5, maxReward: 0.5 }, 1],
        [{ minReward: 2 }, 0],
        [{ task: 'rare', minReward: 1 }, 1],
      ]
      for (const [filter, count] of expected)
        assert.equal((await found(filter)).length, count, JSON.stringify(filter))
      assert.deepEqual(await found({ end: 'turns' }), ['train/step-0001/g0/m0/a0'])
    }),

    promise(
      'F69: every started episode of a step is found by what became of it',
      async ({ claim, other }) => {
        const writer = await claim('one')
        const error = { name: 'Error', message: 'the tool broke' }
        const kept = (member: number, why: string) =>
          trainingEvent({ member }, 0, { untrained: why, data: [] })
        await record(writer, [
          ...[0, 1, 2, 3, 4].flatMap((member) => [
            episodeEvent({ member }),
            scoreEvent({ member }, 1),
            trainingEvent({ member }, 0),
          ]),
          episodeEvent({ member: 5 }, { end: { kind: 'failed', phase: 'tool', error } }),
          kept(5, 'failed'),
          episodeEvent({ member: 6 }, { end: { kind: 'cut', by: 'turns' } }),
          scoreEvent({ member: 6 }, 0),
          trainingEvent({ member: 6 }, 0),
          episodeEvent({ member: 7 }),
          scoreEvent({ member: 7 }, 1),
          kept(7, 'stale'),
          callEvent({ member: 8 }, 0),
        ])
        const found = async (filter: EpisodeFilter) =>
          (await all(other.episodes('one', { step: 0, ...filter }))).map(({ key }) => key.member)
        assert.deepEqual(await found({}), [0, 1, 2, 3, 4, 5, 6, 7, 8])
        assert.deepEqual(await found({ trained: true }), [0, 1, 2, 3, 4, 6])
        assert.deepEqual(await found({ trained: false }), [5, 7])
        assert.deepEqual(await found({ trained: false, end: 'completed' }), [7])
        assert.deepEqual(await found({ end: 'failed' }), [5])
        assert.deepEqual(await found({ end: 'turns' }), [6])
        assert.deepEqual(await found({ end: 'unfinished' }), [8])
        const reasons = (await all(other.episodes('one', { trained: false }))).map(
          ({ trained }) => trained,
        )
        assert.deepEqual(reasons, ['failed', 'stale'])
      },
    ),

    promise('records in bulk are those that one by one would be', async ({ claim, other }) => {
      const writer = await claim('one')
      await record(writer, filterable())
      if (other.records === undefined) return
      const single = await Promise.all(
        (await all(other.episodes('one', { step: 1 }))).map(({ key }) => other.episode('one', key)),
      )
      assert.equal(single.length, 3)
      assert.deepEqual(await all(other.records('one', { step: 1 })), single)
    }),

    promise(
      'groups tell their task, members, mean reward and why they were dropped',
      async (bench) => {
        const writer = await bench.claim('one')
        await record(writer, [
          ...stepOfEvents(0),
          episodeEvent({ step: 1, member: 0 }),
          scoreEvent({ step: 1, member: 0 }, 0),
          // The second try of a member counts, not the first.
          episodeEvent({ step: 1, member: 1, attempt: 0 }),
          episodeEvent({ step: 1, member: 1, attempt: 1 }),
          scoreEvent({ step: 1, member: 1, attempt: 1 }, 1),
          {
            type: 'group',
            key: { split: 'train', step: 1, group: 0 },
            task: 'find-user',
            fingerprint: 'f0',
            members: 3,
            dropped: 'one member failed',
          },
          episodeEvent({ step: 2 }),
        ])
        assert.deepEqual(await all(bench.other.groups('one')), [
          {
            key: { split: 'train', step: 0, group: 0 },
            task: 'find-user',
            members: 2,
            reward: 0.5,
          },
          {
            key: { split: 'train', step: 1, group: 0 },
            task: 'find-user',
            members: 3,
            dropped: 'one member failed',
            reward: 0.5,
          },
          { key: { split: 'train', step: 2, group: 0 }, task: 'find-user', members: 1 },
        ])
        assert.equal((await all(bench.other.groups('one', { step: 1 }))).length, 1)
        assert.equal((await all(bench.other.groups('one', { split: 'eval' }))).length, 0)
      },
    ),
  ]
}

function filterable(): readonly RunEvent[] {
  const failed = {
    kind: 'failed',
    phase: 'tool',
    error: { name: 'Error', message: 'the tool broke' },
  } as const
  return [
    episodeEvent({ step: 0, group: 0 }),
    scoreEvent({ step: 0, group: 0 }, 0),
    episodeEvent({ step: 0, group: 1, member: 0 }, { task: 'rare' }),
    scoreEvent({ step: 0, group: 1, member: 0 }, 1),
    callEvent({ step: 0, group: 1, member: 1 }, 0),
    episodeEvent({ step: 1, group: 0 }, { end: { kind: 'cut', by: 'turns' } }),
    scoreEvent({ step: 1, group: 0 }, -0.5),
    episodeEvent({ step: 1, group: 1 }, { end: failed }),
    episodeEvent({ step: 1, group: 2 }, { task: 'rare' }),
    scoreEvent({ step: 1, group: 2 }, 'no scorer'),
    episodeEvent({ split: 'eval', evaluation: 'smoke', step: 2 }),
    scoreEvent({ split: 'eval', evaluation: 'smoke', step: 2 }, 0.5),
  ]
}
