import assert from 'node:assert/strict'

import { TiltyardError } from '@tiltyard/core'

import type { ConformanceCase } from '../cases.ts'
import { refused } from '../expect.ts'
import { episodeEvent, episodeKey, runRecord, scoreEvent, stepOfEvents } from './events.ts'
import { all, record, type RunIndexPromise } from './fixture.ts'

const RACERS = 16

/** Names that a file system, a key or a case-blind folder could take for others. */
const names = [
  'tinker://a:b',
  'CON',
  'con',
  'x.',
  '.x',
  'Ünï/ä',
  'A',
  'a',
  '../../x',
  'a\\..\\b',
  '%2e%2e%2f',
  'ends with space ',
  'step-0001',
  'ß',
  'ẞ',
  '\u{1f3c7}',
  '\uffff',
]

/** Who may write a run, and what becomes of those who may not. */
export function claimCases(promise: RunIndexPromise): readonly ConformanceCase[] {
  return [
    promise('a claimed run is listed, and read back as it was given', async ({ claim, other }) => {
      const writer = await claim('one')
      assert.equal(writer.epoch, 1)
      const [summary, ...more] = await all(other.runs())
      assert.deepEqual(more, [])
      assert.deepEqual(summary, { name: 'one', status: 'running', startedAt: 1_764_000_000_000 })
      assert.deepEqual((await other.run('one')).record, runRecord('one'))
    }),

    promise('a name that exists is refused to a new run', async ({ claim }) => {
      await (await claim('one')).close()
      const error = await refused(() => claim('one'), ['STATE'], 'a second new run "one"')
      assert.match(error.message, /"one"/)
    }),

    promise('a run that does not exist is refused by name, with what there is', async (bench) => {
      await (await bench.claim('identify-users')).close()
      const calls = [
        () => bench.claim('identify-user', { expect: 'resume' }),
        () => bench.other.run('identify-user'),
        () => all(bench.other.episodes('identify-user')),
        () => all(bench.other.groups('identify-user')),
        () => bench.other.episode('identify-user', episodeKey()),
      ]
      for (const call of calls) {
        const error = await refused(call, ['NOT_FOUND'], 'a run that does not exist')
        assert.match(error.message, /identify-users/)
      }
      const error = await refused(
        () => bench.other.episode('identify-users', episodeKey({ step: 3, group: 2 })),
        ['NOT_FOUND'],
        'an episode that does not exist',
      )
      assert.match(error.message, /train\/step-0003\/g2\/m0\/a0/)
    }),

    promise('a record that is none is refused before anything is written', async (bench) => {
      const wrong = { ...runRecord('one'), seed: 1.5 }
      await refused(() => bench.index.claim(wrong, { expect: 'new' }), ['CONFIG'], 'seed 1.5')
      const nameless = runRecord('')
      await refused(() => bench.index.claim(nameless, { expect: 'new' }), ['CONFIG'], 'no name')
      assert.deepEqual(await all(bench.other.runs()), [])
    }),

    promise(`of ${RACERS} that race for a new name one wins`, async ({ index, other }) => {
      const claims = Array.from({ length: RACERS }, (_, racer) =>
        (racer % 2 === 0 ? index : other).claim(runRecord('race'), { expect: 'new' }),
      )
      const results = await Promise.allSettled(claims)
      const losses = results.filter((result) => result.status === 'rejected')
      assert.equal(results.length - losses.length, 1, 'number of winners')
      assert.ok(losses.every(({ reason }) => TiltyardError.is(reason, 'STATE')))
      assert.equal((await all(other.runs())).length, 1)
    }),

    promise(`${RACERS} that take a run over get an epoch each`, async ({ claim, index, other }) => {
      await claim('race')
      const writers = await Promise.all(
        Array.from({ length: RACERS }, (_, racer) =>
          (racer % 2 === 0 ? index : other).claim(runRecord('race'), {
            expect: 'resume',
            takeOver: true,
          }),
        ),
      )
      const epochs = writers.map(({ epoch }) => epoch).toSorted((a, b) => a - b)
      assert.deepEqual(
        epochs,
        Array.from({ length: RACERS }, (_, racer) => racer + 2),
      )
    }),

    promise('a newer writer fences the older one', async ({ claim, other }) => {
      const older = await claim('one')
      await record(older, [episodeEvent(), scoreEvent({}, 1)])
      const newer = await claim('one', { expect: 'resume', takeOver: true })
      assert.equal(newer.epoch, 2)
      const late = async () => {
        await older.append(episodeEvent({ member: 1 }))
        await older.flush()
      }
      const error = await refused(late, ['STATE'], 'an append of the fenced writer')
      assert.match(error.message, /"one"/)
      await refused(() => older.append(episodeEvent({ member: 2 })), ['STATE'], 'a later append')
      await older.close().catch(() => {})
      await record(newer, [episodeEvent({ member: 3 })])
      const members = (await all(other.episodes('one'))).map(({ key }) => key.member)
      assert.deepEqual(members, [0, 3], 'what both acknowledged, and no more')
    }),

    promise(
      'a run whose writer lives is refused to a second trainer, naming the first',
      async ({ claim, other }) => {
        const writer = await claim('one')
        const again = () => other.claim(runRecord('one'), { expect: 'resume' })
        const error = await refused(again, ['STATE'], 'a second trainer')
        assert.match(error.message, /"one" is being written/)
        await writer.append(episodeEvent())
        await writer.close()
        assert.equal((await again()).epoch, 2, 'once the first has closed')
      },
      'liveness',
    ),

    promise('runs do not mix', async ({ claim, other }) => {
      const [one, two] = [await claim('one'), await claim('two')]
      await Promise.all([
        record(one, stepOfEvents(0)),
        record(two, [episodeEvent({ member: 5 }), ...stepOfEvents(1)]),
      ])
      assert.equal((await all(other.episodes('one'))).length, 2)
      assert.equal((await all(other.episodes('two'))).length, 3)
      assert.deepEqual(
        (await other.run('one')).steps.map(({ step }) => step),
        [0],
      )
    }),

    promise(
      'F62, F63: names from outside are kept apart and read back as they were',
      async (bench) => {
        for (const [member, name] of names.entries()) {
          const writer = await bench.claim(name)
          await record(writer, [
            episodeEvent({ split: 'eval', evaluation: name, member }),
            episodeEvent({ split: 'eval', member }),
          ])
        }
        const listed = (await all(bench.other.runs())).map(({ name }) => name)
        assert.deepEqual(listed.toSorted(), names.toSorted())
        for (const [member, name] of names.entries()) {
          const keys = (await all(bench.other.episodes(name))).map(({ key }) => key)
          const plain = episodeKey({ split: 'eval', member })
          assert.deepEqual(keys, [plain, { ...plain, evaluation: name }])
          const found = await all(bench.other.episodes(name, { evaluation: name }))
          assert.equal(found.length, 1)
          const { episode } = await bench.other.episode(name, { ...plain, evaluation: name })
          assert.equal(episode?.key.evaluation, name)
        }
      },
    ),

    promise(
      'writers that join a run write beside its owner, each for itself',
      async ({ claim, index, other }) => {
        const owner = await claim('one')
        const joined = await Promise.all(
          [index, other].map((at) => at.claim(runRecord('one'), { expect: 'join' })),
        )
        assert.deepEqual(
          joined.map(({ epoch }) => epoch),
          [1, 1],
        )
        await Promise.all(
          [owner, ...joined].map((writer, group) =>
            record(writer, [episodeEvent({ group }), scoreEvent({ group }, group)]),
          ),
        )
        const groups = (await all(other.episodes('one'))).map(({ key }) => key.group)
        assert.deepEqual(groups, [0, 1, 2])
        await claim('one', { expect: 'resume', takeOver: true })
        const late = async () => {
          await joined[0]!.append(episodeEvent({ group: 9 }))
          await joined[0]!.flush()
        }
        await refused(late, ['STATE'], 'an append of a joined writer after a take-over')
      },
      'join',
    ),
  ]
}
