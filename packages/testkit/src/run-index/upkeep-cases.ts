import assert from 'node:assert/strict'

import type { RunIndex, RunUpkeep } from '@tiltyard/core'

import type { ConformanceCase } from '../cases.ts'
import { refused } from '../expect.ts'
import { callEvent, episodeEvent, episodeKey, stepOfEvents } from './events.ts'
import { all, record, type RunIndexPromise } from './fixture.ts'

/** Looking after what is stored. */
export function upkeepCases(promise: RunIndexPromise): readonly ConformanceCase[] {
  return [
    promise(
      'a healthy run has nothing to tell',
      async ({ claim, other }) => {
        const writer = await claim('one')
        await record(writer, [callEvent({ group: 1 }, 0), ...stepOfEvents(0)])
        await writer.close()
        assert.deepEqual(await all(upkeepOf(other).check('one')), [])
      },
      'upkeep',
    ),

    promise(
      'collecting removes what no reader sees, and nothing that one does',
      async ({ claim, other }) => {
        const first = await claim('one')
        for (const step of [0, 1, 2])
          await record(first, [callEvent({ step }, 0), ...stepOfEvents(step)])
        await record(first, [callEvent({ group: 7 }, 0)])
        await first.close()
        const second = await claim('one', { expect: 'resume', resumeAfterStep: 1 })
        await record(second, stepOfEvents(2))
        await second.close()

        const seen = async () => ({
          details: await other.run('one'),
          episodes: await all(other.episodes('one')),
          journal: (await other.episode('one', episodeKey({ group: 7 }))).journal,
          record: (await other.episode('one', episodeKey({ step: 2 }))).episode,
        })
        const before = await seen()
        const upkeep = upkeepOf(other)
        const plan = await upkeep.collect('one', { dryRun: true })
        assert.ok(plan.blobs > 0 && plan.bytes > 0, 'what the resume dropped')
        assert.deepEqual(await upkeep.collect('one'), plan)
        assert.deepEqual(await seen(), before)
        assert.deepEqual(await upkeep.collect('one'), { blobs: 0, bytes: 0 })
      },
      'upkeep',
    ),

    promise(
      'a removed run is gone and its name is free; a living one is not removed',
      async ({ claim, other }) => {
        const writer = await claim('one')
        await record(writer, stepOfEvents(0))
        await claim('two')
        const upkeep = upkeepOf(other)
        await refused(() => upkeep.remove('one'), ['STATE'], 'removing a living run')
        await writer.close()
        assert.ok((await upkeep.remove('one')).blobs > 0)
        assert.deepEqual(
          (await all(other.runs())).map(({ name }) => name),
          ['two'],
        )
        await refused(() => upkeep.remove('one'), ['NOT_FOUND'], 'removing it again')
        const again = await claim('one')
        await record(again, [episodeEvent()])
        assert.equal((await all(other.episodes('one'))).length, 1, 'nothing of the removed run')
      },
      'upkeep',
    ),
  ]
}

function upkeepOf({ upkeep }: RunIndex): RunUpkeep {
  assert.ok(upkeep !== undefined, 'the index has upkeep')
  return upkeep
}
