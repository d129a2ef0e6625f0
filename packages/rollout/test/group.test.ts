import { type GroupPlan } from '@tiltyard/core'
import {
  charRenderer,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { playGroup, type RolloutEvent } from '../src/index.ts'
import { failingAt, groupKey, play, playOne, rewardsOf, rollout } from './support/play.ts'

describe('a group', () => {
  test('F24: all members play one instance with one seed', async () => {
    const seeds: number[] = []
    const plan = scriptedPlan(
      4,
      (_, { seed }) => {
        seeds.push(seed)
        return scriptedEnv({ instance: `instance ${seed}` })
      },
      { seed: 42 },
    )
    const group = await play(plan, { sampler: failingAt(1) })
    expect(seeds).toEqual([42, 42, 42, 42, 42])
    expect(group.dropped).toBeUndefined()
  })

  test('F24: a group with two instances is refused', async () => {
    const plan = scriptedPlan(4, (_, __, index) =>
      scriptedEnv({ instance: `instance ${index % 2}` }),
    )
    const group = await play(plan)
    expect(group.dropped).toBe('its members play different instances: instance 0, instance 1')
    expect(plan.source.opened.every(({ log }) => log.at(-1) === 'close')).toBe(true)
  })

  test('F25: members that play at once never share a play', async () => {
    const plan = scriptedPlan(8, () => {
      const customer = { name: 'Ada' }
      return scriptedEnv({
        step() {
          customer.name += '!'
          return { done: true }
        },
        score: () => customer.name.length,
      })
    })
    expect(rewardsOf(await play(plan, { slotCount: 8 }))).toEqual(
      Array.from({ length: 8 }, () => 4),
    )
  })

  test('F25: a source that gives one object for two plays is refused', async () => {
    const shared = scriptedEnv()
    const plan = scriptedPlan(2, () => shared)
    await expect(play(plan)).rejects.toThrow(
      'source scripted: open: gave one object for two plays; open a fresh one for each',
    )
    expect(shared.log.filter((line) => line === 'close')).toHaveLength(1)
  })

  test('of no member is a mistake', async () => {
    await expect(play(scriptedPlan(0, () => scriptedEnv()))).rejects.toThrow(
      'group train/step-0007/g3: size: expected a whole number of at least 1, got 0',
    )
  })

  test('a mistake in the options names the nearest right key, before anything is played', async () => {
    const plan = scriptedPlan(1, () => scriptedEnv())
    const run = { ...rollout(), limits: { replyToken: 4 } as object }
    await expect(playGroup(plan, groupKey, run)).rejects.toThrow(
      'limits: unknown key "replyToken"; did you mean "replyTokens"?',
    )
    expect(plan.source.opened).toEqual([])
  })

  test('each episode keeps the policy that it began with', async () => {
    const clock = simulatedClock()
    const policies = [0, 1].map((step) => ({
      sampler: slowSampler(
        scriptedSampler(['⟦a {}⟧', 'done'], { version: { id: `v${step}`, step } }),
        {
          milliseconds: 10,
          clock,
        },
      ),
      renderer: charRenderer(),
      sampling: {},
    }))
    let released = 0
    let taken = 0
    const policy = () => ({
      policy: policies[taken++]!,
      release() {
        released += 1
      },
    })
    const group = await play(
      scriptedPlan(2, () => scriptedEnv()),
      { policy, clock, slotCount: 1 },
    )
    expect(group.episodes.map(({ replies }) => replies.map(({ version }) => version.step))).toEqual(
      [
        [0, 0],
        [1, 1],
      ],
    )
    expect(released).toBe(2)
  })
})

describe('observers', () => {
  test('hear what happens, in order', async () => {
    const heard: string[] = []
    const observer = (event: RolloutEvent) => void heard.push(event.type)
    await play(
      scriptedPlan(1, () => scriptedEnv()),
      { sampler: failingAt(0), observer },
    )
    expect(heard).toEqual(['start', 'failure', 'start', 'reply', 'episode', 'group'])
  })

  test('break nothing, whether they throw or reject', async () => {
    const warned: string[] = []
    const logger = {
      debug() {},
      info() {},
      warn: (message: string) => void warned.push(message),
      error() {},
    }
    for (const observer of [thrower, rejecter as () => void]) {
      const { episode } = await playOne({}, { observer, logger })
      expect(episode.reward).toEqual({ reward: 1 })
    }
    expect(warned).toEqual(Array.from({ length: 8 }, () => 'an observer failed and was ignored'))
  })
})

describe('group rewards', () => {
  test('are added to each member’s own, in member order', async () => {
    const scripted = scriptedPlan(
      2,
      (_, __, index) => scriptedEnv({ score: () => index }),
      groupRule([0.5, 0.25]),
    )
    expect(rewardsOf(await play(scripted))).toEqual([0.5, 1.25])
  })

  test('of another number than the members are a mistake of the rule', async () => {
    await expect(play(scriptedPlan(2, () => scriptedEnv(), groupRule([1])))).rejects.toThrow(
      'group reward rule given: gave 1 rewards for 2 outcomes',
    )
  })

  test('that are not finite leave the member unscored', async () => {
    const scripted = scriptedPlan(2, () => scriptedEnv(), groupRule([Number.NaN, 1]))
    expect(rewardsOf(await play(scripted))).toEqual(['reward rule given gave NaN', 2])
  })
})

function thrower(): never {
  throw new Error('thrown')
}

// Typed as one that returns something, as JavaScript would pass it.
async function rejecter(): Promise<never> {
  throw new Error('rejected')
}

function groupRule(rewards: readonly number[]): Partial<GroupPlan> {
  return {
    groupReward: {
      specVersion: 'group-reward-rule/1',
      name: 'given',
      check() {},
      rewards: () => rewards.map((reward) => ({ reward })),
    },
  }
}
