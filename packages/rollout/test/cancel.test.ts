import type { RunWriter } from '@tiltyard/core'
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

import { playBatch, playGroup, type RolloutEvent } from '../src/index.ts'
import { groupKey, never, rollout, type TestRollout } from './support/play.ts'
import { expectQuiet } from './support/quiet.ts'

expectQuiet()

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
