import { episodeId, type RunEvent } from '@tiltyard/core'
import { memoryRunIndex, scriptedEnv, scriptedPlan } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { groupEvent } from '../src/index.ts'
import { groupKey, play, rollout } from './support/play.ts'
import { firstKey, recorded, runRecord } from './support/recorded.ts'

const key = firstKey
const typesOf = (events: readonly RunEvent[]) => events.map(({ type }) => type)

test('E35, E8: a failed attempt is in the record with its reason, and the next attempt beside it', async () => {
  let plays = 0
  const index = await recorded(1, {
    step() {
      plays += 1
      if (plays === 1) throw new RangeError('the store is closed')
      return { done: true }
    },
  })
  const again = { ...key, attempt: 1 }
  const failed = await index.episode('run', key)
  expect(failed.episode?.end).toEqual({
    kind: 'failed',
    phase: 'tool',
    error: { name: 'RangeError', message: 'the store is closed' },
  })
  expect(failed.score).toBeUndefined()
  expect(failed.failures).toMatchObject([{ phase: 'tool', error: { name: 'RangeError' } }])
  expect((await index.episode('run', again)).score?.reward).toEqual({ reward: 1 })
  expect(typesOf(index.events('run')).at(-1)).toBe('group')
})

test('an episode that could not be opened is in the record', async () => {
  const index = memoryRunIndex()
  const writer = await index.claim(runRecord, { expect: 'new' })
  await play(
    scriptedPlan(1, () => Promise.reject(new Error('no sandbox'))),
    { writer, failures: { kind: 'minGroup' } },
  )
  expect((await index.episode('run', key)).episode).toMatchObject({
    end: { kind: 'failed', phase: 'open' },
    replies: [],
    sequences: [],
  })
})

test('a score that failed is recorded as unscored, with the failure', async () => {
  const index = await recorded(1, { score: () => Promise.reject(new Error('no judge')) })
  const { score, failures } = await index.episode('run', key)
  expect(score).toMatchObject({ scores: {}, reward: { unscored: 'scoring failed: no judge' } })
  expect(failures).toMatchObject([{ phase: 'score' }])
})

test('a dropped group is recorded with the reason, unless its caller records it', async () => {
  const failing = { step: () => Promise.reject(new Error('x')) }
  const options = { failures: { kind: 'minGroup' } } as const
  const index = await recorded(2, failing, options)
  const groups: unknown[] = []
  for await (const group of index.groups('run')) groups.push(group)
  expect(groups).toMatchObject([
    { key: groupKey, members: 2, dropped: '0 of 2 members, and at least 2 are needed' },
  ])
  const silent = await recorded(2, failing, { ...options, recordGroup: false })
  expect(typesOf(silent.events('run'))).not.toContain('group')
})

test('the event of a group takes the caller’s reason for dropping it', async () => {
  const group = await play(scriptedPlan(1, () => scriptedEnv()))
  expect(groupEvent(group, 'constant')).toMatchObject({
    type: 'group',
    members: 1,
    dropped: 'constant',
  })
  expect(groupEvent(group)).not.toHaveProperty('dropped')
})

test('F69: a cancelled run leaves each started episode with its outcome', async () => {
  const index = memoryRunIndex()
  const writer = await index.claim(runRecord, { expect: 'new' })
  const controller = new AbortController()
  const run = rollout({ writer, signal: controller.signal })
  const plan = scriptedPlan(2, () =>
    scriptedEnv({
      step(_, { signal }) {
        controller.abort(new Error('enough'))
        return run.clock.sleep(1_000, signal).then(() => ({ done: true }))
      },
    }),
  )
  await expect(play(plan, run)).rejects.toThrow('enough')
  const ends: unknown[] = []
  for await (const { key: found, end } of index.episodes('run')) ends.push([episodeId(found), end])
  expect(ends).toEqual([
    ['train/step-0007/g3/m0/a0', { kind: 'cancelled' }],
    ['train/step-0007/g3/m1/a0', { kind: 'cancelled' }],
  ])
})
