import { scriptedEnv, scriptedPlan, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { playMetrics, rolloutErrors, rolloutMetrics, type PlayedGroup } from '../src/index.ts'
import { groupKey, play } from './support/play.ts'

function group(changes: Partial<PlayedGroup>): PlayedGroup {
  const task = { id: 'task', fingerprint: 'f' }
  return { key: groupKey, task, size: 4, episodes: [], failures: [], ms: 1, ...changes }
}

describe('metrics', () => {
  test('statement 32: errors are counted by their class, and skipped groups apart', () => {
    const key = { ...groupKey, member: 0, attempt: 0 }
    const failures = ['TimeoutError', 'RuntimeError'].map((name) => ({
      key,
      phase: 'tool' as const,
      error: { name, message: '' },
    }))
    const metrics = rolloutMetrics([group({ failures }), group({ dropped: 'too few' })])
    expect(metrics).toEqual({
      'rollout_errors/TimeoutError': 1,
      'rollout_errors/RuntimeError': 1,
      'rollout_errors/total': 2,
      'rollout_errors/groups_skipped': 1,
    })
  })

  test('statement 74: of four episodes, one cut, the rates are 0.75 and 0.25', async () => {
    const played = await play(
      scriptedPlan(4, () => scriptedEnv()),
      {
        replies: ({ index }) => (index === 0 ? 'much too long' : 'ok'),
        limits: { replyTokens: 4 },
      },
    )
    expect(rolloutMetrics([played])).toMatchObject({
      'stop/completed': 0.75,
      'stop/reply_tokens': 0.25,
      cut: 0.25,
    })
  })

  test('every play has every number, so that means are over all episodes', async () => {
    const played = await play(scriptedPlan(2, () => scriptedEnv()))
    for (const { metrics } of played.episodes)
      expect(Object.keys(metrics)).toEqual(expect.arrayContaining(Object.keys(playMetrics)))
  })

  test('retries are counted', async () => {
    let steps = 0
    const step = () => {
      steps += 1
      if (steps < 3) throw new Error('again')
      return { done: true } as const
    }
    const played = await play(scriptedPlan(1, () => scriptedEnv({ step })))
    expect(rolloutMetrics([played])).toMatchObject({
      'rollout_errors/Error': 2,
      'rollout_errors/retries': 2,
    })
  })

  test('retries that did not help are counted too', async () => {
    const step = () => Promise.reject(new Error('for good'))
    const failures = { kind: 'retry', retries: 3 } as const
    const played = await play(
      scriptedPlan(1, () => scriptedEnv({ step })),
      { failures },
    )
    expect(rolloutErrors([played])).toEqual({
      'rollout_errors/Error': 4,
      'rollout_errors/total': 4,
      'rollout_errors/retries': 3,
      'rollout_errors/groups_skipped': 1,
    })
  })

  test('no group gives no number', () => {
    expect(rolloutMetrics([])).toEqual({})
  })
})

test('a group tells how long it took', async () => {
  const clock = simulatedClock()
  const played = await play(
    scriptedPlan(1, () => scriptedEnv({ onStart: () => clock.sleep(250) })),
    { clock },
  )
  expect(played.ms).toBe(250)
})
