import { ConfigError, type EpisodeOutcome, type GroupPlan, type RewardRule } from '@tiltyard/core'
import {
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
  type ScriptedEnvOptions,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { createSlots, rolloutMetrics } from '../src/index.ts'
import { play, playOne } from './support/play.ts'

function outcome(score: number, metrics: Record<string, number> = {}): EpisodeOutcome {
  return { end: { kind: 'completed' }, scores: { score: { value: score } }, metrics }
}

function ruleOf(reward: RewardRule['reward']): RewardRule {
  return { specVersion: 'reward-rule/1', name: 'test', check() {}, reward }
}

function scoredBy(score: NonNullable<ScriptedEnvOptions['score']>) {
  return scriptedPlan(3, () => scriptedEnv({ score }))
}

const judged = (wait: (signal: AbortSignal) => Promise<void>): ScriptedEnvOptions => ({
  async judge(before, signal) {
    await wait(signal)
    return { ...before, scores: { ...before.scores, style: { value: 0.75 } } }
  },
})

describe('a scorer that fails', () => {
  test('F26: is asked again, and the episode is not played again for it', async () => {
    let asked = 0
    const score = () => {
      asked += 1
      if (asked === 1) throw new Error('rate limit')
      return 0.5
    }
    const plan = scriptedPlan(1, () => scriptedEnv({ score }))
    const group = await play(plan)
    expect(group.episodes[0]?.reward).toEqual({ reward: 0.5 })
    expect(group.failures).toEqual([])
    expect(plan.source.opened).toHaveLength(1)
  })

  test('F26: leaves its episodes unscored, never zero, and is counted', async () => {
    const plan = scriptedPlan(8, (_, __, index) =>
      scriptedEnv({
        score() {
          if (index < 2) throw new TypeError('bad reply of the judge')
          return 0.5
        },
      }),
    )
    const group = await play(plan, { slotCount: 8 })
    expect(group.dropped).toBeUndefined()
    expect(group.episodes.map(({ reward }) => reward)).toEqual([
      { unscored: 'scoring failed: bad reply of the judge' },
      { unscored: 'scoring failed: bad reply of the judge' },
      ...Array.from({ length: 6 }, () => ({ reward: 0.5 })),
    ])
    expect(group.episodes[0]?.outcome).toBeUndefined()
    expect(group.failures.map(({ phase }) => phase)).toEqual(['score', 'score'])
    expect(rolloutMetrics([group])).toMatchObject({
      'score/score': 0.5,
      unscored: 0.25,
      'rollout_errors/TypeError': 2,
      'rollout_errors/total': 2,
    })
  })

  test('F28: touches one episode; a wrong set-up of scoring ends it all', async () => {
    const wrong = new ConfigError('rewards', [{ at: 'reward', message: 'unknown step "anwser"' }])
    await expect(play(scoredBy(() => Promise.reject(wrong)))).rejects.toBe(wrong)
    const crash = await play(scoredBy(() => Promise.reject(new Error('crash'))))
    expect(crash.episodes).toHaveLength(3)
  })

  test('that hangs is given up after the verifier’s time', async () => {
    const clock = simulatedClock()
    const { episode } = await playOne(
      {
        async score(_, signal) {
          await clock.sleep(60_000, signal)
          return 1
        },
      },
      { clock, limits: { verifierMs: 1_000 }, scoreAttempts: 3 },
    )
    expect(episode.reward).toMatchObject({
      unscored: 'scoring failed: gave up waiting for the score of an episode after 1000 ms',
    })
    expect(clock.now()).toBe(3_000)
  })
})

describe('a number that is none', () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'F32: a score of %d is no score',
    async (value) => {
      const { episode } = await playOne({ score: () => value })
      expect(episode.outcome?.scores).toEqual({ score: { unscored: `the verifier gave ${value}` } })
      expect(episode.reward).toEqual({ unscored: `the verifier gave ${value}` })
    },
  )

  test('statement 41: one NaN among the rewards leaves the others as they are', async () => {
    const rewards = [1, Number.NaN, 0]
    const plan = scriptedPlan(3, (_, __, index) => scriptedEnv({ score: () => rewards[index]! }))
    const { episodes } = await play(plan)
    expect(episodes.map(({ reward }) => reward)).toEqual([
      { reward: 1 },
      { unscored: 'the verifier gave NaN' },
      { reward: 0 },
    ])
  })

  test('a rule that gives NaN, or throws, leaves the episode unscored', async () => {
    const nan = await playOne({}, {}, { reward: ruleOf(() => ({ reward: Number.NaN })) })
    expect(nan.episode.reward).toEqual({ unscored: 'reward rule test gave NaN' })
    const thrown = await playOne(
      {},
      {},
      {
        reward: ruleOf(() => {
          throw new Error('no')
        }),
      },
    )
    expect(thrown.episode.reward).toEqual({ unscored: 'reward rule test failed: no' })
    expect(thrown.episode.outcome?.scores).toEqual({ score: { value: 1 } })
  })

  test('a metric that is not finite is left out', async () => {
    const { episode } = await playOne({ score: () => outcome(1, { good: 2, bad: Number.NaN }) })
    expect(episode.metrics).toMatchObject({ good: 2 })
    expect(episode.metrics).not.toHaveProperty('bad')
  })
})

describe('an outcome', () => {
  test('has the end that the play had, the Env’s numbers, and the play’s own', async () => {
    const { episode } = await playOne(
      { score: () => outcome(1, { messages: 4, tool_calls: 9 }) },
      { replies: ['⟦a {}⟧'], limits: { replies: 2 } },
    )
    expect(episode.outcome?.end).toEqual({ kind: 'cut', by: 'replies' })
    expect(episode.metrics).toMatchObject({ messages: 4, tool_calls: 9, replies: 2, cut: 1 })
    expect(episode.metrics).toEqual(episode.outcome?.metrics)
  })
})

describe('a judge', () => {
  const both: Partial<GroupPlan> = {
    reward: ruleOf(({ scores }) => {
      const values = Object.values(scores).map((score) => ('value' in score ? score.value : 0))
      return { reward: values.reduce((sum, value) => sum + value, 0) }
    }),
  }

  test('E5: adds its scores when the slot is free and the episode closed', async () => {
    const clock = simulatedClock()
    const slots = createSlots(1)
    const inUse: number[] = []
    const plan = scriptedPlan(
      2,
      () =>
        scriptedEnv(
          judged(async (signal) => {
            await clock.sleep(10_000, signal)
            inUse.push(slots.inUse)
          }),
        ),
      both,
    )
    const sampler = slowSampler(scriptedSampler(['done']), { milliseconds: 1_000, clock })
    const group = await play(plan, { clock, slots, sampler })
    expect(group.episodes.map(({ reward }) => reward)).toEqual([{ reward: 1.75 }, { reward: 1.75 }])
    expect(inUse).toEqual([0, 0])
    expect(clock.now()).toBe(12_000)
  })

  test('E5: waits for others within a bound of its own', async () => {
    const clock = simulatedClock()
    const judgeSlots = createSlots(1)
    const plan = scriptedPlan(
      3,
      () => scriptedEnv(judged((signal) => clock.sleep(1_000, signal))),
      both,
    )
    await play(plan, { clock, judgeSlots })
    expect(judgeSlots).toMatchObject({ peak: 1, inUse: 0 })
    expect(clock.now()).toBe(3_000)
  })

  test('that fails leaves the episode unscored: a part of the scores is no score', async () => {
    const env = judged(() => Promise.reject(new Error('no judge')))
    const { episode } = await playOne(env, {}, both)
    expect(episode.reward).toEqual({ unscored: 'scoring failed: no judge' })
  })
})
