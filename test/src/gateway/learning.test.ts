import { isDeepStrictEqual } from 'node:util'

import { beforeAll, describe, expect, test } from 'vitest'

import { smallAgents, type SmallAgent } from './agents.ts'
import { learn, progress, singer } from './learn.ts'

/** The reward of each step, with the openai client by `fetch`. */
let reference: readonly number[]
beforeAll(async () => {
  reference = await learn(singer(smallAgents.openai))
})

test('an agent learns on the embedded backend: its reward rises from chance', () => {
  expect(reference).toHaveLength(12)
  expect(reference[0]).toBeLessThan(0.4)
  expect(progress(reference)).toBeGreaterThan(0.3)
})

test('by the network it learns the very same', async () => {
  expect(await learn(singer(smallAgents.openai, true))).toEqual(reference)
})

test('through a Tinker service, by the same loop, it learns too', async () => {
  expect(progress(await learn(singer(smallAgents.openai), { overTinker: true }))).toBeGreaterThan(
    0.3,
  )
})

/** This client asks once more when a reply is empty, which is a reply of its own to learn from. */
const ASKS_AGAIN = 'Agents SDK (chat)'

describe.each(Object.entries<SmallAgent>(smallAgents))('%s', (name, agent) => {
  test('learns, and whatever client brings the words, they train the same weights', async () => {
    const rewards = await learn(singer(agent))
    expect(progress(rewards)).toBeGreaterThan(0.3)
    expect(isDeepStrictEqual(rewards, reference)).toBe(name !== ASKS_AGAIN)
  })
})
