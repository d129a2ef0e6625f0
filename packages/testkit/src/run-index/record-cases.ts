import assert from 'node:assert/strict'

import type { EpisodeEvent, RunEvent } from '@tiltyard/core'

import type { ConformanceCase } from '../cases.ts'
import { refused } from '../expect.ts'
import {
  callEvent,
  episodeEvent,
  episodeKey,
  metricsEvent,
  scoreEvent,
  stepEvent,
  stepOfEvents,
  trainingEvent,
} from './events.ts'
import { all, appendAll, record, type RunIndexPromise } from './fixture.ts'

/** What is kept of what was appended. */
export function recordCases(promise: RunIndexPromise): readonly ConformanceCase[] {
  return [
    promise('an episode is read back as it was recorded, to the bit', async (bench) => {
      const writer = await bench.claim('one')
      const [episode, score, training] = [
        episodeEvent(),
        scoreEvent({}, 0.1 + 0.2),
        trainingEvent({}, 0),
      ]
      const failure: RunEvent = {
        type: 'failure',
        key: episodeKey(),
        phase: 'score',
        error: { name: 'JudgeError', code: 'DEADLINE', message: 'no answer' },
      }
      await record(writer, [failure, episode, score, training])
      const found = await bench.other.episode('one', episodeKey())
      assert.deepEqual(found.episode, episode)
      assert.deepEqual(found.score, score)
      assert.deepEqual(found.training, training)
      assert.deepEqual(found.failures, [failure])
      assert.equal(found.damage, undefined)
      const [summary] = await all(bench.other.episodes('one'))
      assert.deepEqual(found.summary, summary)
    }),

    promise('a run is read back: steps, metrics, checkpoints, failures, its end', async (bench) => {
      const writer = await bench.claim('one')
      const failure: RunEvent = {
        type: 'failure',
        step: 1,
        phase: 'record',
        error: { name: 'StoreError', message: 'disk full' },
      }
      const end: RunEvent = { type: 'end', status: 'failed', step: 1, at: 1_764_000_009_000 }
      const deleted: RunEvent = { type: 'checkpoint', step: 1, name: 'step-1', deleted: true }
      const late: RunEvent = { ...metricsEvent(0, 0.5), split: 'eval' }
      const events = [...stepOfEvents(0), ...stepOfEvents(1), late, deleted, failure, end]
      await record(writer, events)
      const details = await bench.other.run('one')
      const ofType = (type: RunEvent['type']) => events.filter((event) => event.type === type)
      assert.deepEqual(details.steps, ofType('step'))
      assert.deepEqual(details.metrics, ofType('metrics'))
      assert.deepEqual(
        details.checkpoints.map(({ name }) => name),
        ['step-2'],
      )
      assert.deepEqual(details.failures, [failure])
      assert.deepEqual(details.end, end)
      assert.equal(details.summary.status, 'failed')
      assert.equal(details.summary.step, 1)
    }),

    promise('a run ends as its writer said, or else as interrupted', async ({ claim, other }) => {
      const done = await claim('done')
      await record(done, [{ type: 'end', status: 'completed', step: 0, at: 1 }])
      await done.close()
      const left = await claim('left')
      await left.append(stepEvent(4))
      await left.close()
      const summaries = await all(other.runs())
      assert.deepEqual(
        summaries.map(({ name, status, step }) => ({ name, status, step })),
        [
          { name: 'done', status: 'completed', step: undefined },
          { name: 'left', status: 'interrupted', step: 4 },
        ],
      )
    }),

    promise('closing makes durable; a closed writer takes nothing', async ({ claim, other }) => {
      const writer = await claim('one')
      await appendAll(writer, stepOfEvents(0))
      await Promise.all([writer.close(), writer.close()])
      await writer.close()
      assert.equal((await all(other.episodes('one'))).length, 2)
      await refused(() => writer.append(stepEvent(1)), ['STATE'], 'an append after close')
    }),

    promise('an event that can’t be written is refused and harms no other', async (bench) => {
      const writer = await bench.claim('one')
      await writer.append(episodeEvent({ member: 0 }))
      await refused(() => writer.append(metricsEvent(0, NaN)), ['DATA'], 'NaN as a metric')
      const wrong = { type: 'score', key: episodeKey() } as unknown as RunEvent
      await refused(() => writer.append(wrong), ['DATA'], 'a score without scores')
      await writer.append(episodeEvent({ member: 1 }))
      await writer.flush()
      assert.equal((await all(bench.other.episodes('one'))).length, 2)
    }),

    promise('appends that nobody waited for are kept, all of them', async ({ claim, other }) => {
      const writer = await claim('one')
      const keys = Array.from({ length: 500 }, (_, index) => ({
        group: index % 50,
        member: Math.floor(index / 50),
      }))
      const appended = keys.flatMap((key) => [
        writer.append(episodeEvent(key)),
        writer.append(scoreEvent(key, key.group / 50)),
      ])
      await writer.flush()
      await Promise.all(appended)
      await writer.flush()
      const found = await all(other.episodes('one'))
      assert.equal(found.length, keys.length)
      assert.ok(
        found.every(
          ({ key, reward }) =>
            reward !== undefined && 'reward' in reward && reward.reward === key.group / 50,
        ),
      )
    }),

    promise('an episode of several megabytes is read back whole', async ({ claim, other }) => {
      const writer = await claim('one')
      const turns = 300
      const messages: EpisodeEvent['messages'] = Array.from({ length: turns }, (_, turn) => ({
        role: 'tool',
        toolCallId: `c${turn}`,
        content: `${turn} `.repeat(5_000),
      }))
      const ids = Int32Array.from({ length: 100_000 }, (_, index) => index * 7)
      const logprobs = Float32Array.from({ length: ids.length }, (_, index) => -index / 3)
      const mask = Int32Array.from({ length: ids.length }, (_, index) => index % 2)
      const large = episodeEvent({}, { messages, sequences: [{ ids, logprobs, mask }] })
      await record(writer, [large, episodeEvent({ member: 1 })])
      assert.deepEqual((await other.episode('one', episodeKey())).episode, large)
    }),

    promise('an episode under way is seen by its journal', async ({ claim, other }) => {
      const writer = await claim('one')
      const calls = [callEvent({ member: 1 }, 0), callEvent({ member: 1 }, 1)]
      await record(writer, [callEvent({ member: 0 }, 0), ...calls, episodeEvent({ member: 0 })])
      const [ended, open] = await all(other.episodes('one'))
      assert.deepEqual(ended?.end, { kind: 'completed' })
      assert.equal(open?.end, undefined)
      assert.equal(open?.task, 'find-user')
      assert.equal(open?.replies, 2)
      assert.equal(open?.calls, 2)
      const found = await other.episode('one', episodeKey({ member: 1 }))
      assert.equal(found.episode, undefined)
      assert.deepEqual(found.journal, calls)
    }),
  ]
}
