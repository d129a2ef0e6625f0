import type { EndReason, Env, RunWriter } from '@tiltyard/core'
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
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

import { playBatch, playGroup, type RolloutEvent } from '../src/index.ts'
import {
  answerOf,
  groupKey,
  play,
  playOne,
  promptOf,
  rollout,
  type TestRollout,
} from './support/play.ts'

/** How episodes end, and that they do. */

const unhandled: unknown[] = []
const note = (reason: unknown) => void unhandled.push(reason)
const warnings: Error[] = []
const warn = (warning: Error) => void warnings.push(warning)

beforeEach(() => {
  process.on('unhandledRejection', note)
  process.on('warning', warn)
})

afterEach(async () => {
  await new Promise((resolve) => {
    setImmediate(resolve)
  })
  process.off('unhandledRejection', note)
  process.off('warning', warn)
  const [first] = [...unhandled.splice(0), ...warnings.splice(0)]
  if (first !== undefined)
    throw new Error('a rejection nobody holds, or a warning', { cause: first })
})

const never = () => new Promise<never>(() => {})

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

/** Plays a group of 16 that is cancelled after a second of simulated time; gives what it left. */
async function cancelled(
  env: (clock: SimulatedClock) => ScriptedEnvOptions,
  options: (clock: SimulatedClock) => TestRollout = () => ({}),
) {
  const clock = simulatedClock()
  const controller = new AbortController()
  const events: RolloutEvent[] = []
  const plan = scriptedPlan(16, () => scriptedEnv(env(clock)))
  const run = rollout({
    clock,
    slotCount: 12,
    signal: controller.signal,
    observer: (event) => void events.push(event),
    ...options(clock),
  })
  void clock.sleep(1_000).then(() => controller.abort(new Error('enough')))
  await expect(clock.drive(playGroup(plan, groupKey, run))).rejects.toThrow('enough')
  expect(clock.now()).toBeLessThanOrEqual(3_000)
  expect(run.slots.inUse).toBe(0)
  expect(run.slots.waiting).toBe(0)
  // Nothing that still runs then disturbs anything later.
  await clock.advance(600_000)
  return { envs: plan.source.opened, events, took: clock.now() }
}
const endings = (envs: readonly { readonly log: readonly string[] }[]) =>
  new Set(
    envs.map(({ log }) => log.filter((line) => line.startsWith('end') || line === 'close').join()),
  )

describe('F21: a cancellation', () => {
  test('while sampling ends all episodes, closed, within two seconds', async () => {
    const { envs, events } = await cancelled(
      () => ({}),
      () => ({ sampler: hangingSampler(scriptedSampler([])) }),
    )
    expect(envs).toHaveLength(12)
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
    expect(events.filter(({ type }) => type === 'cancelled')).toHaveLength(12)
  })

  test('during tools that heed their signal', async () => {
    const { envs, events } = await cancelled((clock) => ({
      async step(_, { signal }) {
        await clock.sleep(50_000, signal)
        return { done: true }
      },
    }))
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
    expect(events.filter(({ type }) => type === 'late')).toEqual([])
  })

  test('during tools, ends, closings and records that heed nothing: they are left behind and told', async () => {
    const writer: RunWriter = {
      epoch: 1,
      append: async ({ type }) => (type === 'call' ? undefined : never()),
      async flush() {},
      async close() {},
    }
    const { envs, events } = await cancelled(
      () => ({ step: never, onEnd: never, onClose: never }),
      () => ({ writer }),
    )
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
    expect(events.filter(({ type }) => type === 'late')).toHaveLength(12)
    const phases = events.flatMap((event) =>
      event.type === 'failure' ? [event.failure.phase] : [],
    )
    expect(phases.filter((phase) => phase === 'end')).toHaveLength(12)
    expect(phases.filter((phase) => phase === 'close')).toHaveLength(12)
  })

  test('during tools whose work fails after all is over', async () => {
    const { envs } = await cancelled((clock) => ({
      async step() {
        await clock.sleep(20_000)
        throw new Error('nobody hears this')
      },
    }))
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
  })

  test('during scoring', async () => {
    const { envs } = await cancelled(() => ({ score: never }))
    expect(endings(envs)).toEqual(new Set(['end completed,close']))
  })

  test('during the end', async () => {
    const { envs } = await cancelled(() => ({ onEnd: never }))
    expect(endings(envs)).toEqual(new Set(['end completed,close']))
  })

  test('during the start and while opening', async () => {
    const { envs } = await cancelled(() => ({ onStart: never }))
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
  })

  test('while a hook hangs', async () => {
    const { envs } = await cancelled(
      () => ({}),
      () => ({ hooks: { beforeReply: never } }),
    )
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
  })

  test('while the record hangs', async () => {
    const writer: RunWriter = { epoch: 1, append: never, async flush() {}, async close() {} }
    const { envs } = await cancelled(
      () => ({}),
      () => ({ writer }),
    )
    expect(endings(envs)).toEqual(new Set(['end cancelled,close']))
  })

  test('before anything began plays nothing', async () => {
    const plan = scriptedPlan(2, () => scriptedEnv())
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(playGroup(plan, groupKey, rollout({ signal }))).rejects.toThrow('enough')
    expect(plan.source.opened).toEqual([])
  })

  test('by leaving a batch early ends the rest of it', async () => {
    const clock = simulatedClock()
    const sampler = slowSampler(scriptedSampler(['done']), {
      milliseconds: (index) => 100 * (index + 1),
      clock,
    })
    const plans = [0, 1, 2].map(() => scriptedPlan(1, () => scriptedEnv()))
    const run = rollout({ clock, sampler })
    const first = async () => {
      for await (const group of playBatch(plans, { split: 'train', step: 0 }, run)) return group
      return undefined
    }
    expect((await clock.drive(first()))?.key.group).toBe(0)
    expect(plans.map(({ source }) => source.opened[0]?.log.at(-1))).toEqual([
      'close',
      'close',
      'close',
    ])
    expect(run.slots.inUse).toBe(0)
    expect(clock.now()).toBe(100)
  })
})

describe('a batch', () => {
  test('gives its groups as they are over, under their place', async () => {
    const clock = simulatedClock()
    const sampler = slowSampler(scriptedSampler(['done']), {
      milliseconds: (index) => [300, 100, 200][index]!,
      clock,
    })
    const plans = [0, 1, 2].map(() => scriptedPlan(1, () => scriptedEnv()))
    const keys: unknown[] = []
    const all = async () => {
      const place = { split: 'eval', evaluation: 'smoke', step: 4 } as const
      for await (const { key } of playBatch(plans, place, rollout({ clock, sampler })))
        keys.push(key)
    }
    await clock.drive(all())
    expect(keys).toEqual(
      [1, 2, 0].map((group) => ({ split: 'eval', evaluation: 'smoke', step: 4, group })),
    )
  })

  test('whose group rejects ends the others before it rejects', async () => {
    const clock = simulatedClock()
    const broken = scriptedPlan(1, () =>
      scriptedEnv({ step: () => Promise.reject(new Error('x')) }),
    )
    const slow = scriptedPlan(1, () =>
      scriptedEnv({
        async step(_, { signal }) {
          await clock.sleep(50_000, signal)
          return { done: true }
        },
      }),
    )
    const run = rollout({ clock, failures: { kind: 'failFast' } })
    const all = async () => {
      for await (const group of playBatch([broken, slow], { split: 'train', step: 0 }, run))
        throw new Error(`unexpected ${group.key.group}`)
    }
    await expect(clock.drive(all())).rejects.toThrow('failed in phase tool: x')
    expect(slow.source.opened[0]?.log).toEqual(['start', 'step 0', 'end cancelled', 'close'])
  })

  test('of no group is over at once', async () => {
    const groups: unknown[] = []
    for await (const group of playBatch([], { split: 'train', step: 0 }, rollout()))
      groups.push(group)
    expect(groups).toEqual([])
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
