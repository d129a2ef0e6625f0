import { ConfigError, UnsupportedError, type RunWriter } from '@tiltyard/core'
import {
  memoryRunIndex,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
  type ScriptedEnv,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { createRetryBudget, EpisodeError, playGroup, viableSize } from '../src/index.ts'
import { failingAt, groupKey, play, rewardsOf, rollout } from './support/play.ts'

describe('failures', () => {
  test('statement 24: a group needs ⌈¾ · size⌉ members by default', () => {
    expect([1, 2, 3, 4, 5, 8, 13, 16].map(viableSize)).toEqual([1, 2, 3, 3, 4, 6, 10, 12])
  })

  test('statement 25: a group goes on without one of four, and is dropped without two', async () => {
    const failures = { kind: 'minGroup' } as const
    const three = await play(
      scriptedPlan(4, () => scriptedEnv()),
      { sampler: failingAt(1), failures },
    )
    expect(three.episodes).toHaveLength(3)
    expect(three.failures).toHaveLength(1)
    expect(three.dropped).toBeUndefined()
    const two = await play(
      scriptedPlan(4, () => scriptedEnv()),
      { sampler: failingAt(1, 2), failures },
    )
    expect(two.dropped).toBe('2 of 4 members, and at least 3 are needed')
  })

  test('statement 26: one failure that does not come again leaves a whole group and one error', async () => {
    const group = await play(
      scriptedPlan(2, () => scriptedEnv()),
      { sampler: failingAt(0) },
    )
    expect(group.episodes.map(({ key }) => [key.member, key.attempt])).toEqual([
      [0, 1],
      [1, 0],
    ])
    expect(group.failures).toEqual([
      {
        key: { ...groupKey, member: 0, attempt: 0 },
        phase: 'sample',
        error: { name: 'TypeError', message: 'call 0 broke' },
      },
    ])
  })

  test('statement 27: without retries a failure drops the group', async () => {
    const group = await play(
      scriptedPlan(4, () => scriptedEnv()),
      {
        sampler: failingAt(0),
        failures: { kind: 'retry', retries: 0 },
      },
    )
    expect(group.dropped).toContain(
      'no retries left: episode train/step-0007/g3/m0/a0 (task task) failed in phase sample: call 0 broke',
    )
  })

  test('statement 28: a retry opens one fresh environment, not a group of them', async () => {
    const plan = scriptedPlan(4, () => scriptedEnv())
    await play(plan, { sampler: failingAt(2) })
    expect(plan.source.opened).toHaveLength(5)
    expect(new Set(plan.source.opened).size).toBe(5)
  })

  test('statement 29: members are in their own order, whoever came first', async () => {
    const clock = simulatedClock()
    const sampler = slowSampler(scriptedSampler(['done']), {
      milliseconds: (index) => 100 - 10 * index,
      clock,
    })
    const plan = scriptedPlan(3, (_, __, index) => scriptedEnv({ score: () => index }))
    const group = await play(plan, { sampler, clock })
    expect(rewardsOf(group)).toEqual([0, 1, 2])
  })

  test('statement 30: under failFast siblings are cancelled and cleaned up before the group rejects', async () => {
    const clock = simulatedClock()
    const log: string[] = []
    const plan = scriptedPlan(3, (_, __, index) =>
      scriptedEnv({
        async step(_reply, { signal }) {
          if (index === 0) throw new Error('the shop burnt down')
          await clock.sleep(60_000, signal).catch(() => log.push(`cancelled ${index}`))
          return { done: true }
        },
        onClose: () => void log.push(`closed ${index}`),
      }),
    )
    const error = await play(plan, { clock, failures: { kind: 'failFast' } }).catch(
      (reason: unknown) => {
        log.push('rejected')
        return reason
      },
    )
    expect(error).toBeInstanceOf(EpisodeError)
    expect(error).toMatchObject({ phase: 'tool', cause: { message: 'the shop burnt down' } })
    expect(log).toEqual([
      'closed 0',
      'cancelled 1',
      'cancelled 2',
      'closed 1',
      'closed 2',
      'rejected',
    ])
    expect(plan.source.opened.map(({ log: calls }) => calls.at(-2))).toEqual([
      'end failed',
      'end cancelled',
      'end cancelled',
    ])
    expect(clock.now()).toBeLessThan(2_000)
  })

  test('statement 31: cancelling a group that retries cancels its episodes', async () => {
    const clock = simulatedClock()
    const controller = new AbortController()
    const plan = scriptedPlan(3, () =>
      scriptedEnv({
        async step(_, { signal }) {
          await clock.sleep(1_000, signal)
          throw new Error('again')
        },
      }),
    )
    const failures = { kind: 'retry', retries: 100 } as const
    const run = rollout({ clock, failures, signal: controller.signal })
    const playing = playGroup(plan, groupKey, run)
    void clock.sleep(5_500).then(() => controller.abort(new Error('enough')))
    await expect(clock.drive(playing)).rejects.toThrow('enough')
    const opened = plan.source.opened.length
    expect(plan.source.opened.every(({ log }) => log.at(-1) === 'close')).toBe(true)
    await clock.advance(60_000)
    expect(plan.source.opened).toHaveLength(opened)
    expect(run.slots.inUse).toBe(0)
  })

  test('retries of all groups together have a budget, when one is given', async () => {
    const retryBudget = createRetryBudget(2)
    const sampler = failingAt(0, 1, 2, 3)
    const failures = { kind: 'retry', retries: 3 } as const
    const options = { sampler, failures, retryBudget, slotCount: 1 }
    const group = await play(
      scriptedPlan(1, () => scriptedEnv()),
      options,
    )
    expect(group.failures).toHaveLength(3)
    expect(group.dropped).toContain('no retries left')
    expect(retryBudget.left).toBe(0)
  })

  test('minGroup plays again only while the group is too small', async () => {
    const failures = { kind: 'minGroup', retries: 5 } as const
    const late = await play(
      scriptedPlan(4, () => scriptedEnv()),
      {
        sampler: failingAt(3),
        failures,
        slotCount: 1,
      },
    )
    expect(late.episodes.map(({ key }) => key.member)).toEqual([0, 1, 2])
    const early = await play(
      scriptedPlan(4, () => scriptedEnv()),
      {
        sampler: failingAt(0),
        failures,
        slotCount: 1,
      },
    )
    expect(early.episodes.map(({ key }) => [key.member, key.attempt])).toEqual([
      [0, 1],
      [1, 0],
      [2, 0],
      [3, 0],
    ])
  })

  test('F23: an episode that fails after three replies gives the group nothing to train', async () => {
    const plan = scriptedPlan(2, (_, __, index) =>
      scriptedEnv({
        step(reply, _context, step) {
          if (index === 0 && step === 2) throw new Error('a sub-agent failed')
          return {
            done: false,
            messages: reply.toolCalls!.map(({ id }) => ({
              role: 'tool',
              toolCallId: id,
              content: '',
            })),
          }
        },
      }),
    )
    const group = await play(plan, {
      replies: ['⟦a {}⟧'],
      failures: { kind: 'minGroup', atLeast: 1 },
      limits: { replies: 4 },
    })
    expect(group.episodes.map(({ key }) => key.member)).toEqual([1])
    expect(group.failures).toMatchObject([
      { phase: 'tool', error: { message: 'a sub-agent failed' } },
    ])
  })

  test.each([
    ['open', { open: () => Promise.reject(new Error('x')) }],
    ['start', { onStart: () => Promise.reject(new Error('x')) }],
    ['tool', { step: () => Promise.reject(new Error('x')) }],
    ['end', { onEnd: () => Promise.reject(new Error('x')) }],
  ] as const)('a failure of the phase %s is told with it, and is no reward', async (phase, env) => {
    const plan = scriptedPlan<ScriptedEnv>(1, () => ('open' in env ? env.open() : scriptedEnv(env)))
    const group = await play(plan, { failures: { kind: 'retry', retries: 0 } })
    expect(group.episodes).toEqual([])
    expect(group.failures).toMatchObject([{ phase, error: { name: 'Error', message: 'x' } }])
    for (const { log } of plan.source.opened) {
      expect(log.filter((entry) => entry.startsWith('end'))).toHaveLength(1)
      expect(log.at(-1)).toBe('close')
      expect(log).not.toContain('score')
    }
  })

  test('a failing close is told, and the episode’s score stands', async () => {
    const env = { onClose: () => Promise.reject(new Error('left a process behind')) }
    const group = await play(scriptedPlan(1, () => scriptedEnv(env)))
    expect(rewardsOf(group)).toEqual([1])
    expect(group.failures).toMatchObject([
      { phase: 'close', error: { message: 'left a process behind' } },
    ])
  })

  test('what makes every play senseless ends it all, with its own error', async () => {
    for (const error of [new ConfigError('x', []), new UnsupportedError('no images')]) {
      const plan = scriptedPlan(3, () => scriptedEnv({ onStart: () => Promise.reject(error) }))
      await expect(play(plan)).rejects.toBe(error)
      expect(plan.source.opened.every(({ log }) => log.at(-1) === 'close')).toBe(true)
    }
  })

  test('a fault in what the run brings with it ends it all, cleaned up', async () => {
    const times = [0, 0, Number.NaN]
    const plan = scriptedPlan(3, () => scriptedEnv())
    const wallClock = () => {
      const time = times.shift()!
      if (Number.isNaN(time)) throw new Error('no time')
      return time
    }
    await expect(play(plan, { wallClock })).rejects.toThrow('no time')
    expect(plan.source.opened.every(({ log }) => log.at(-1) === 'close')).toBe(true)
  })

  test('a record that takes nothing any more ends it all', async () => {
    const index = memoryRunIndex()
    const record = {
      version: 1,
      name: 'r',
      startedAt: 0,
      seed: 1,
      config: {},
      fingerprints: {},
      versions: {},
    } as const
    const writer = await index.claim(record, { expect: 'new' })
    await index.claim(record, { expect: 'resume', takeOver: true })
    await expect(
      play(
        scriptedPlan(2, () => scriptedEnv()),
        { writer },
      ),
    ).rejects.toThrow('run "r" was taken over')
  })

  test('an event that the record refuses fails its episode alone', async () => {
    let episodes = 0
    const writer: RunWriter = {
      epoch: 1,
      async append({ type }) {
        if (type === 'episode' && episodes++ === 0) throw new TypeError('no such event')
      },
      async flush() {},
      async close() {},
    }
    const group = await play(
      scriptedPlan(2, () => scriptedEnv()),
      { writer },
    )
    expect(group.episodes).toHaveLength(2)
    expect(group.failures).toMatchObject([{ phase: 'record' }])
  })
})
