import type { EndReason, Env } from '@tiltyard/core'
import {
  hangingSampler,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
  type ScriptedEnvOptions,
  type SimulatedClock,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { playGroup } from '../src/index.ts'
import {
  answerOf,
  groupKey,
  never,
  play,
  playOne,
  promptOf,
  rollout,
  type TestRollout,
} from './support/play.ts'
import { expectQuiet } from './support/quiet.ts'

expectQuiet()

describe('statement 23: an Env hears of its end exactly once', () => {
  interface Way {
    readonly env?: (clock: SimulatedClock) => ScriptedEnvOptions
    readonly options?: (clock: SimulatedClock) => TestRollout
    readonly cancelAt?: number
  }
  const ways: readonly (readonly [string, string, Way])[] = [
    ['completed', 'end completed', {}],
    [
      'cut by its length',
      'end reply_tokens',
      { options: () => ({ replies: ['too long'], limits: { replyTokens: 3 } }) },
    ],
    ['a malformed reply', 'end malformed_reply', { options: () => ({ replies: ['⟦⟧'] }) }],
    [
      'a history that outgrew the window',
      'end context_window',
      {
        env: () => ({ observation: promptOf(10), step: answerOf(100) }),
        options: () => ({ replies: ['⟦a {}⟧'], limits: { contextWindow: 50 } }),
      },
    ],
    [
      'a spent budget',
      'end sampled_tokens',
      { options: () => ({ replies: ['⟦a {}⟧'], limits: { sampledTokens: 10 } }) },
    ],
    [
      'its time',
      'end episode_time',
      {
        options: (clock) => ({
          sampler: slowSampler(scriptedSampler(['done']), { milliseconds: 5_000, clock }),
          limits: { episodeMs: 1_000 },
        }),
      },
    ],
    ['an exception', 'end failed', { env: () => ({ step: () => Promise.reject(new Error('x')) }) }],
    [
      'a failing start',
      'end failed',
      { env: () => ({ onStart: () => Promise.reject(new Error('x')) }) },
    ],
    [
      'a cancellation',
      'end cancelled',
      { options: () => ({ sampler: hangingSampler(scriptedSampler([])) }), cancelAt: 1_000 },
    ],
  ]

  test.each(ways)('%s', async (_, entry, { env, options, cancelAt }) => {
    const clock = simulatedClock()
    const controller = new AbortController()
    const plan = scriptedPlan(1, () => scriptedEnv(env?.(clock)))
    const run = rollout({
      clock,
      failures: { kind: 'minGroup' },
      signal: controller.signal,
      ...options?.(clock),
    })
    if (cancelAt !== undefined) void clock.sleep(cancelAt).then(() => controller.abort())
    await clock.drive(playGroup(plan, groupKey, run).catch(() => {}))
    const { log } = plan.source.opened[0]!
    expect(log.filter((line) => line.startsWith('end'))).toEqual([entry])
    expect(log.filter((line) => line === 'close')).toHaveLength(1)
    expect(log.at(-1)).toBe('close')
    const isScored = !['end failed', 'end cancelled'].includes(entry)
    expect(log.includes('score')).toBe(isScored)
  })
})

describe('time', () => {
  test('an episode whose time is up keeps what it played and is scored', async () => {
    const clock = simulatedClock()
    const sampler = slowSampler(scriptedSampler(['⟦a {}⟧']), { milliseconds: 400, clock })
    const { episode } = await playOne({}, { sampler, clock, limits: { episodeMs: 1_000 } })
    expect(episode.end).toEqual({ kind: 'cut', by: 'episode_time' })
    expect(episode.replies).toHaveLength(2)
    expect(episode.reward).toEqual({ reward: 1 })
    expect(episode.ms).toBe(1_000)
  })

  test('F70: a step that is told to stop has ended before the episode is scored', async () => {
    const clock = simulatedClock()
    const log: string[] = []
    const { episode } = await playOne(
      {
        async step(_, { signal }) {
          await clock.sleep(60_000, signal).catch(() => log.push('told to stop'))
          await clock.sleep(3_000)
          log.push('stopped')
          throw new Error('killed')
        },
        score: () => {
          log.push('scored')
          return 0.5
        },
      },
      { clock, limits: { episodeMs: 1_000 } },
    )
    expect(log).toEqual(['told to stop', 'stopped', 'scored'])
    expect(episode.end).toEqual({ kind: 'cut', by: 'episode_time' })
  })

  test('F27: a step that ends the episode within the grace ends it as completed', async () => {
    const clock = simulatedClock()
    const step: ScriptedEnvOptions['step'] = async () => {
      await clock.sleep(1_500)
      return { done: true }
    }
    const { episode } = await playOne({ step }, { clock, limits: { episodeMs: 1_000 } })
    expect(episode.end).toEqual({ kind: 'completed' })
  })

  test('code that does not heed its signal is left behind after ten seconds, and told', async () => {
    const clock = simulatedClock()
    const late: string[] = []
    const { episode, env } = await playOne(
      { step: never },
      {
        clock,
        limits: { episodeMs: 1_000 },
        observer(event) {
          if (event.type === 'late') late.push(event.what)
        },
      },
    )
    expect(clock.now()).toBe(11_000)
    expect(episode.end).toEqual({ kind: 'cut', by: 'episode_time' })
    expect(env.log).toEqual(['start', 'step 0', 'end episode_time', 'score', 'close'])
    expect(late).toEqual(['play'])
  })

  test('F21: what comes after the end is ignored and told', async () => {
    const clock = simulatedClock()
    const late: string[] = []
    const { episode } = await playOne(
      {
        async step() {
          await clock.sleep(20_000)
          return { done: false, messages: [{ role: 'user', content: 'late' }], turn: {} }
        },
        onClose: () => clock.sleep(15_000),
      },
      {
        clock,
        limits: { episodeMs: 1_000 },
        observer(event) {
          if (event.type === 'late') late.push(event.what)
        },
      },
    )
    expect(episode.replies).toHaveLength(1)
    expect(late).toEqual(['play', 'observation'])
  })

  test.each([
    [
      'reply',
      'sample',
      { sampler: hangingSampler(scriptedSampler([])), waits: { replyMs: 5_000 } },
      {},
    ],
    ['step', 'tool', { waits: { stepMs: 5_000 } }, { step: never }],
    ['end', 'end', { waits: { endMs: 5_000 } }, { onEnd: never }],
  ] as const)(
    'a %s that hangs fails its episode, saying what was waited for',
    async (_, phase, options, env) => {
      const clock = simulatedClock()
      const group = await play(
        scriptedPlan(1, () => scriptedEnv(env)),
        {
          clock,
          failures: { kind: 'minGroup' },
          ...options,
        },
      )
      expect(group.failures).toMatchObject([{ phase, error: { code: 'DEADLINE' } }])
      expect(group.failures[0]?.error.message).toContain('gave up waiting for')
      expect(group.failures[0]?.error.message).toContain('after 5000 ms')
      expect(clock.now()).toBeLessThanOrEqual(15_000)
    },
  )

  test('an opening that hangs fails its episode; what it opens later is ended and closed', async () => {
    const clock = simulatedClock()
    const env = scriptedEnv()
    const plan = scriptedPlan(1, async () => {
      await clock.sleep(60_000)
      return env
    })
    const group = await play(plan, {
      clock,
      failures: { kind: 'minGroup' },
      waits: { openMs: 1_000 },
    })
    expect(group.failures).toMatchObject([{ phase: 'open', error: { code: 'DEADLINE' } }])
    expect(env.log).toEqual([])
    await clock.advance(60_000)
    expect(env.log).toEqual(['end failed', 'close'])
  })
})

test('an episode that says of itself that it was cancelled has failed', async () => {
  const end: EndReason = { kind: 'cancelled' }
  const plan = scriptedPlan<Env>(1, () => scriptedEnv())
  const source = {
    ...plan.source,
    open: async () => ({
      specVersion: 'episode/1' as const,
      play: async () => end,
      async end() {},
      score: never,
      async close() {},
    }),
  }
  const group = await play({ ...plan, source }, { failures: { kind: 'minGroup' } })
  expect(group.failures).toMatchObject([{ phase: 'agent', error: { code: 'STATE' } }])
})
