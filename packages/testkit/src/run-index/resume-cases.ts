import assert from 'node:assert/strict'

import type { ConformanceCase } from '../cases.ts'
import {
  episodeEvent,
  episodeKey,
  metricsEvent,
  scoreEvent,
  stepEvent,
  stepOfEvents,
  trainingEvent,
} from './events.ts'
import { all, record, type RunIndexPromise } from './fixture.ts'

/** What readers see of a run that several writers wrote, one after the other. */
export function resumeCases(promise: RunIndexPromise): readonly ConformanceCase[] {
  return [
    promise('resuming after a step drops what came after it, and only that', async (bench) => {
      const first = await bench.claim('one')
      for (const step of [0, 1, 2]) await record(first, stepOfEvents(step))
      // Played at step 1, trained only at step 2.
      await record(first, [
        episodeEvent({ step: 1, group: 1 }),
        trainingEvent({ step: 1, group: 1 }, 2),
        episodeEvent({ split: 'eval', step: 1 }),
        episodeEvent({ split: 'eval', step: 2 }),
      ])
      await first.close()
      const second = await bench.claim('one', { expect: 'resume', resumeAfterStep: 1 })
      assert.equal((await bench.other.run('one')).summary.step, 1, 'before the first new event')
      await record(second, [metricsEvent(2, 9), stepEvent(2)])

      const details = await bench.other.run('one')
      assert.deepEqual(
        details.steps.map(({ step }) => step),
        [0, 1, 2],
      )
      assert.deepEqual(
        details.metrics.map(({ values }) => values['loss']),
        [1, 1 / 2, 9],
        'one line a step, in the order of an uninterrupted run',
      )
      // Weights that have seen two steps are those after step 1.
      assert.deepEqual(
        details.checkpoints.map(({ name }) => name),
        ['step-1', 'step-2'],
      )
      const kept = (await all(bench.other.episodes('one'))).map(({ key }) => key)
      assert.deepEqual(kept, [
        episodeKey({ step: 0, member: 0 }),
        episodeKey({ step: 0, member: 1 }),
        episodeKey({ step: 1, member: 0 }),
        episodeKey({ step: 1, member: 1 }),
        episodeKey({ step: 1, group: 1 }),
        episodeKey({ split: 'eval', step: 1 }),
      ])
      const late = await bench.other.episode('one', episodeKey({ step: 1, group: 1 }))
      assert.equal(late.training, undefined, 'its update came after step 1')
    }),

    promise('an episode that is played again is the newer play alone', async ({ claim, other }) => {
      const first = await claim('one')
      await record(first, [episodeEvent(), scoreEvent({}, 1), trainingEvent({}, 0)])
      await first.close()
      const second = await claim('one', { expect: 'resume' })
      const again = episodeEvent({}, { ms: 7, end: { kind: 'cut', by: 'turns' } })
      await record(second, [again])
      const [summary, ...more] = await all(other.episodes('one'))
      assert.deepEqual(more, [])
      assert.deepEqual(summary?.end, again.end)
      assert.equal(summary?.reward, undefined, 'the older play’s score is not the newer one’s')
      assert.equal(summary?.trained, undefined)
      const found = await other.episode('one', episodeKey())
      assert.deepEqual(found.episode, again)
      assert.equal(found.score, undefined)
    }),

    promise('a later writer may score and train what an earlier one played', async (bench) => {
      const first = await bench.claim('one')
      const episode = episodeEvent()
      await record(first, [episode, scoreEvent({}, 0)])
      await first.close()
      const second = await bench.claim('one', { expect: 'resume' })
      await record(second, [scoreEvent({}, 1), trainingEvent({}, 3)])
      const found = await bench.other.episode('one', episodeKey())
      assert.deepEqual(found.episode, episode)
      assert.deepEqual(found.score, scoreEvent({}, 1))
      assert.equal(found.summary.trained, true)
    }),

    promise('equal content again is no second event', async ({ claim, other }) => {
      const first = await claim('one')
      await record(first, [...stepOfEvents(0), ...stepOfEvents(0)])
      await first.close()
      const second = await claim('one', { expect: 'resume' })
      await record(second, stepOfEvents(0))
      const details = await other.run('one')
      assert.equal(details.steps.length, 1)
      assert.equal(details.metrics.length, 1)
      assert.equal(details.checkpoints.length, 1)
      assert.equal((await all(other.episodes('one'))).length, 2)
      assert.equal((await all(other.groups('one'))).length, 1)
    }),
  ]
}
