import { endName, type UserMessage } from '@tiltyard/core'
import {
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
  simulatedClock,
  slowSampler,
  type ScriptedEnv,
  type SimulatedClock,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { cookbookReward, createSlots, playBatch } from '../src/index.ts'
import { answerOf, play, promptOf, rewardsOf, rollout } from './support/play.ts'

const user = (content: string): UserMessage => ({ role: 'user', content })

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

  const ways: readonly (readonly [end: string, env: (clock: SimulatedClock) => ScriptedEnv])[] = [
    ['completed', () => scriptedEnv()],
    ['reply_tokens', () => scriptedEnv({ observation: { messages: [user('at length')] } })],
    [
      'context_window',
      () => scriptedEnv({ observation: { messages: [user('call a tool')] }, step: answerOf(200) }),
    ],
    ['context_window', () => scriptedEnv({ observation: promptOf(150) })],
    [
      'episode_time',
      (clock) =>
        scriptedEnv({
          async step(_, { signal }) {
            await clock.sleep(60_000, signal)
            return { done: true }
          },
        }),
    ],
    ['failed: tool', () => scriptedEnv({ step: () => Promise.reject(new Error('no shop')) })],
    ['failed: start', () => scriptedEnv({ onStart: () => Promise.reject(new Error('no door')) })],
    ['unscored', () => scriptedEnv({ score: () => Promise.reject(new Error('no scale')) })],
  ]

  test.each([
    [1, 2],
    [1, 4],
    [2, 4],
    [2, 8],
    [8, 16],
    [8, 32],
  ])(
    'E2, E3: with %d slots a group of %d ends whatever ends its members, and every slot is free',
    async (slotCount, size) => {
      const clock = simulatedClock()
      const slots = createSlots(slotCount)
      const replies = ({ text }: { readonly text: string }) => {
        if (text.includes('call a tool')) return '⟦look {}⟧'
        return text.includes('at length') ? 'x'.repeat(30) : 'ok'
      }
      const group = await play(
        scriptedPlan(size, (_, __, opened) => ways[opened % ways.length]![1](clock)),
        {
          clock,
          slots,
          replies,
          failures: { kind: 'minGroup', atLeast: 1 },
          limits: { replyTokens: 20, contextWindow: 100, episodeMs: 1_000 },
        },
      )
      const ended = new Map(
        group.episodes.map(({ key, end, outcome }) => [
          key.member,
          outcome === undefined ? 'unscored' : endName(end),
        ]),
      )
      for (const { key, phase } of group.failures)
        if (phase !== 'score') ended.set(key.member, `failed: ${phase}`)
      const members = Array.from({ length: size }, (_, member) => member)
      expect(members.map((member) => ended.get(member))).toEqual(
        members.map((member) => ways[member % ways.length]![0]),
      )
      expect(slots).toMatchObject({ peak: slotCount, inUse: 0, waiting: 0 })
      expect(clock.sleeping).toBe(0)
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
