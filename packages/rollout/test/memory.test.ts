import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import type { RunWriter, Sampler } from '@tiltyard/core'
import {
  charReply,
  charRenderer,
  scriptedEnv,
  scriptedSampler,
  scriptedSource,
  scriptedTask,
  stepReward,
} from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createSlots, playGroup, type RolloutOptions } from '../src/index.ts'

const SIZE = 10

test('F79: memory is flat over 10,000 episodes', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  // One signal and one set of slots for all, as in a run; the doubles that keep a log are made anew.
  const { signal } = new AbortController()
  const slots = createSlots(SIZE)
  const heaps = new Map<number, number>()
  for (let episodes = SIZE; episodes <= 10_000; episodes += SIZE) {
    await playOneGroup(episodes / SIZE, { signal, slots })
    if (episodes === 2_000 || episodes === 9_000) {
      collectGarbage()
      heaps.set(episodes, process.memoryUsage().heapUsed)
    }
  }
  expect(heaps.get(9_000)! / heaps.get(2_000)!).toBeLessThan(1.1)
})

async function playOneGroup(
  step: number,
  shared: Pick<RolloutOptions, 'slots'> & { readonly signal: AbortSignal },
): Promise<void> {
  const source = scriptedSource({ open: () => scriptedEnv() })
  const plan = { source, task: scriptedTask(), size: SIZE, reward: stepReward(), seed: step }
  const policy = { sampler: twoReplies(), renderer: charRenderer(), sampling: {} }
  const options = { ...shared, seed: 1, policy, writer: forgetful }
  const { episodes } = await playGroup(plan, { split: 'train', step, group: 0 }, options)
  expect(episodes).toHaveLength(SIZE)
}

/** A call, then an answer. */
function twoReplies(): Sampler {
  const [call, answer] = [charReply('⟦look {}⟧'), charReply('done')]
  return scriptedSampler(({ request }) => ({
    ids: request.prompt.parent === undefined ? call : answer,
  }))
}

const forgetful: RunWriter = { epoch: 1, async append() {}, async flush() {}, async close() {} }
