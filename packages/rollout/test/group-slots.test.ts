import {
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { cookbookReward, createSlots, playBatch } from '../src/index.ts'
import { play, rewardsOf, rollout } from './support/play.ts'

describe('slots', () => {
  test('statement 22, E2: a group whose members are all cut ends, scored, within its slots', async () => {
    const slots = createSlots(2)
    const plan = scriptedPlan(4, () => scriptedEnv({ score: () => 0.25 }), {
      reward: cookbookReward(),
    })
    const group = await play(plan, { replies: ['too long'], limits: { replyTokens: 4 }, slots })
    for (const reward of rewardsOf(group)) expect(reward).toBeCloseTo(0.15, 6)
    expect(group.episodes.map(({ end }) => end)).toEqual(
      Array.from({ length: 4 }, () => ({ kind: 'cut', by: 'reply_tokens' })),
    )
    expect(slots).toMatchObject({ peak: 2, inUse: 0 })
  })

  test.each([
    [16, 1],
    [6, 2],
    [16, 8],
  ])(
    'F18: a group of %d with %d slots finishes, all cut or half of it',
    async (size, slotCount) => {
      const replies = ['much too long']
      const all = await play(
        scriptedPlan(size, () => scriptedEnv()),
        {
          replies,
          slotCount,
          limits: { replyTokens: 4 },
        },
      )
      expect(all.episodes).toHaveLength(size)
      const half = await play(
        scriptedPlan(size, () => scriptedEnv()),
        {
          replies: ({ index }) => (index < size / 2 ? 'much too long' : 'ok'),
          slotCount,
          limits: { replyTokens: 4 },
        },
      )
      expect(half.episodes.map(({ end }) => end.kind)).toEqual(
        Array.from({ length: size }, (_, member) => (member < size / 2 ? 'cut' : 'completed')),
      )
    },
  )

  test('a cut member is scored and frees its slot while a sibling still plays', async () => {
    const clock = simulatedClock()
    const sampler = slowSampler(
      scriptedSampler(({ index }) => (index === 0 ? 'too long' : 'ok')),
      {
        milliseconds: (index) => (index === 0 ? 10 : 10_000),
        clock,
      },
    )
    const slots = createSlots(2)
    const ended: [number, number][] = []
    await play(
      scriptedPlan(3, () => scriptedEnv()),
      {
        sampler,
        clock,
        slots,
        limits: { replyTokens: 4 },
        observer(event) {
          if (event.type === 'episode') ended.push([event.episode.key.member, clock.now()])
        },
      },
    )
    expect(ended).toEqual([
      [0, 10],
      [1, 10_000],
      [2, 10_010],
    ])
  })

  test('F19: the bound counts live episodes over all groups, training and evaluation together', async () => {
    const clock = simulatedClock()
    let live = 0
    let most = 0
    const plan = () =>
      scriptedPlan(5, () =>
        scriptedEnv({
          onStart() {
            live += 1
            most = Math.max(most, live)
          },
          onClose() {
            live -= 1
          },
        }),
      )
    const sampler = slowSampler(scriptedSampler(['done']), { milliseconds: 5, clock })
    const run = rollout({ sampler, clock, slotCount: 3 })
    await clock.drive(
      Promise.all([
        collect(playBatch([plan(), plan()], { split: 'train', step: 0 }, run)),
        collect(playBatch([plan(), plan()], { split: 'eval', step: 0 }, run)),
      ]),
    )
    expect(most).toBe(3)
    expect(run.slots.peak).toBe(3)
  })
})

async function collect<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
