import {
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { playBatch } from '../src/index.ts'
import { rollout } from './support/play.ts'
import { expectQuiet } from './support/quiet.ts'

expectQuiet()

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
