import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { localBackend } from '@tiltyard/backend-local'
import {
  type EpisodeOutcome,
  type GroupRewardRule,
  randomStream,
  type RewardRule,
} from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { listDataset, train } from '@tiltyard/train'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import {
  letterSource,
  letterTasks,
  letterTraining,
  rightReply,
  VOCABULARY,
} from '../../../packages/train/test/support/letters.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tiltyard-shuffled-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

const nothing: RewardRule = {
  specVersion: 'reward-rule/1',
  name: 'nothing',
  check() {},
  reward: () => ({ reward: 0 }),
}

/** What a group's members earned, in an order of the rule's choice. Which members earned it is all that a shuffle changes. */
function earned(name: string, order: (rewards: readonly number[]) => readonly number[]) {
  const rule: GroupRewardRule = {
    specVersion: 'group-reward-rule/1',
    name,
    check() {},
    rewards: (outcomes) => order(outcomes.map(right)).map((reward) => ({ reward })),
  }
  return rule
}

function right({ scores }: EpisodeOutcome): number {
  const score = scores['right']
  return score !== undefined && 'value' in score ? score.value : 0
}

const STEPS = 30

/** Share of right replies in each step of a training of a real, small decoder from random weights. */
async function shareOfRight(groupReward: GroupRewardRule, seed: number): Promise<number[]> {
  const source = letterSource({ score: (task, said) => Number(said[0] === rightReply(task)) })
  const backend = localBackend({
    models: {
      tiny: {
        shape: {
          vocabularySize: VOCABULARY,
          width: 32,
          layers: 1,
          heads: 2,
          kvHeads: 1,
          headSize: 16,
          hidden: 32,
          contextWindow: 32,
        },
        initial: { seed, deviation: 0.1 },
      },
    },
    folder,
    threads: 1,
  })
  const run = train(
    letterTraining({
      backend,
      model: 'tiny',
      index: memoryRunIndex(),
      dataset: listDataset({
        name: 'letters',
        tasks: letterTasks('abcdef', 32, source).map((task) => ({
          ...task,
          reward: nothing,
          groupReward,
        })),
        groupsPerBatch: 6,
      }),
      steps: STEPS,
      advantages: { scale: 'std' },
      optimizer: { learningRate: 0.01, clipNorm: 1 },
      checkpoints: { every: 0 },
      seed,
    }),
  )
  const shares: number[] = []
  for await (const { values } of run) shares.push(values['env/all/score/right']!)
  await backend.close()
  return shares
}

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length

describe('reinforcement learning is what does it', () => {
  test.each([1, 2])(
    'seed %d: the same steps with the advantages of each group shuffled do not improve',
    async (seed) => {
      const random = randomStream(seed, 'shuffle')
      const own = await shareOfRight(
        earned('own', (rewards) => rewards),
        seed,
      )
      const shuffled = await shareOfRight(
        earned('shuffled', (rewards) => random.shuffle(rewards)),
        seed,
      )
      expect(own).toHaveLength(STEPS)
      expect(shuffled[0]).toBe(own[0])
      expect(mean(own.slice(0, 2))).toBeLessThan(0.1)
      expect(mean(own.slice(-5))).toBeGreaterThan(0.4)
      expect(mean(shuffled.slice(-5))).toBeLessThan(0.1)
    },
  )
})
