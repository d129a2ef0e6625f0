import { describe, expect, test } from 'vitest'

import { stepWarnings, type StepFacts } from '../../src/metrics/warnings.ts'
import { playedGroup, playedReply, rewarded } from '../support/played.ts'

const facts = (more: Partial<StepFacts> = {}): StepFacts => ({
  step: 0,
  groups: [rewarded(1, 0)],
  constant: 0,
  trained: 1,
  updates: 1,
  values: {},
  onPolicy: true,
  ...more,
})
const codes = (more: Partial<StepFacts>) => stepWarnings(facts(more)).map(({ code }) => code)

describe('warnings of a step', () => {
  test('a healthy step has none', () => {
    expect(codes({ values: { 'optim/logprob_diff_mean': 0.01, 'optim/loss': 1 } })).toEqual([])
  })

  test('F30: all groups constant says so, with the number and the likely reason', () => {
    const bad = stepWarnings(facts({ groups: [rewarded(0, 0), rewarded(0, 0)], constant: 2 }))
    expect(bad[0]).toMatchObject({ code: 'all_groups_constant' })
    expect(bad[0]!.message).toMatch(/all 2 groups.*too hard/)
    const good = stepWarnings(facts({ groups: [rewarded(1, 1)], constant: 1 }))
    expect(good[0]!.message).toMatch(/the only group.*too easy/)
  })

  test('F30: over half of the replies cut says so, with the number and the likely reason', () => {
    const cut = playedReply(
      [1],
      Array.from({ length: 16 }, () => 2),
      undefined,
      { stop: 'length' },
    )
    const whole = playedReply([1], [2])
    const group = playedGroup([
      { reward: 0, replies: [cut] },
      { reward: 1, replies: [cut, whole] },
    ])
    const [warning] = stepWarnings(facts({ groups: [group] }))
    expect(warning).toMatchObject({ code: 'replies_cut' })
    expect(warning!.message).toMatch(/2 of 3 replies.*16 tokens.*replyTokens/)
    const half = playedGroup([{ reward: 0, replies: [cut, whole] }])
    expect(codes({ groups: [half] })).toEqual([])
  })

  test('episodes that had no room for a reply are told with their limit and a task', () => {
    const end = { kind: 'cut', by: 'context_window' } as const
    const group = playedGroup([
      { reward: 0, replies: [], end },
      { reward: 1, end },
    ])
    expect(stepWarnings(facts({ groups: [group] }))).toEqual([
      {
        code: 'no_room',
        message: expect.stringMatching(
          /^1 of 2 episodes were cut \(context_window\) before their first reply, for instance of task task; .*longer than the context window/,
        ),
      },
    ])
  })

  test('F37: a gap between sampler and learner for the same weights is named with its size', () => {
    const values = { 'optim/logprob_diff_mean': 0.3 }
    expect(stepWarnings(facts({ values }))[0]!.message).toMatch(/differ by 0.300 nats/)
    expect(codes({ values, onPolicy: false })).toEqual([])
  })

  test('numbers that are not finite are named', () => {
    const [warning] = stepWarnings(facts({ values: { 'optim/loss': null, 'optim/lr': 1 } }))
    expect(warning).toEqual({ code: 'not_finite', message: 'not finite: optim/loss' })
  })

  test('a step without an update says that it was skipped', () => {
    expect(codes({ updates: 0, trained: 0 })).toEqual(['skipped_step'])
  })
})
