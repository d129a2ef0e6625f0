import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { localBackend } from '@tiltyard/backend-local'
import { tinkerBackend } from '@tiltyard/backend-tinker'
import type { RewardRule, TaskRef, TaskSource } from '@tiltyard/core'
import { agentSource, createGateway, serveGateway, type AgentModel } from '@tiltyard/gateway'
import { memoryRunIndex, stepReward } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'
import { defineTraining, listDataset, train } from '@tiltyard/train'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { smallAgents, type SmallAgent } from './agents.ts'
import { LETTERS, lettersRenderer } from './letters.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-learning-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** The task: say words of vowels. The reward is their share of what was said. */
function shareOfVowels(said: string): number {
  const letters = said.replaceAll(' ', '')
  return letters === '' ? 0 : letters.replaceAll(/[^aeiou]/g, '').length / letters.length
}

interface LearningOptions {
  readonly name: string
  readonly agent: SmallAgent
  readonly steps: number
  /** By the network instead of by `fetch`. */
  readonly served?: boolean
  /** The embedded backend behind the Tinker protocol, instead of itself. */
  readonly overTinker?: boolean
}

/** Trains the agent's model on the embedded backend; gives the mean reward of each step. */
async function learn({
  name,
  agent,
  steps,
  served = false,
  overTinker = false,
}: LearningOptions): Promise<readonly number[]> {
  const gateway = createGateway()
  const server = served ? await serveGateway(gateway) : undefined
  const embedded = localBackend({
    folder: join(folder, name.replaceAll(/\W+/g, '-')),
    models: {
      tiny: {
        shape: {
          vocabularySize: LETTERS,
          width: 32,
          layers: 1,
          heads: 2,
          kvHeads: 1,
          headSize: 16,
          hidden: 64,
          contextWindow: 64,
        },
      },
    },
    threads: 1,
  })
  const tinker = overTinker ? tinkerServer({ backend: embedded }) : undefined
  const backend =
    tinker === undefined
      ? embedded
      : tinkerBackend({ baseUrl: await tinker.listen(), apiKey: 'tml-on-this-machine' })
  const source = agentSource({
    name,
    gateway,
    tasks: [{ id: 'vowels', prompt: 'sing' }],
    async agent({ prompt }, { model, signal }) {
      const reached: AgentModel = served ? { ...model, fetch } : model
      const said = await agent({
        model: reached,
        prompt,
        tools: [],
        stream: true,
        signal,
      })
      return shareOfVowels(said)
    },
  })
  const training = defineTraining({
    run: 'vowels',
    index: memoryRunIndex(),
    backend,
    model: 'tiny',
    adaptation: 'full',
    renderer: lettersRenderer(),
    dataset: listDataset({
      name: 'vowels',
      groupsPerBatch: 2,
      tasks: await planned(source, stepReward('reward')),
    }),
    steps,
    limits: { replyTokens: 8 },
    optimizer: { learningRate: 0.02 },
    evalEvery: 0,
    checkpoints: { every: 0 },
  })
  const rewards: number[] = []
  try {
    for await (const { values } of train(training)) rewards.push(values['env/all/reward/total']!)
  } finally {
    await backend.close()
    await tinker?.close()
    await embedded.close()
    await gateway.close()
    await server?.close()
  }
  return rewards
}

async function planned(source: TaskSource, reward: RewardRule) {
  const tasks: TaskRef[] = []
  for await (const task of source.tasks('all')) tasks.push(task)
  return tasks.map((task) => ({ source, task, size: 16, reward }))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

test('an agent on the openai client learns on the embedded backend, through fetch alone', async () => {
  const rewards = await learn({ name: 'openai learns', agent: smallAgents.openai, steps: 15 })
  expect(mean(rewards.slice(-5))).toBeGreaterThan(mean(rewards.slice(0, 5)) + 0.3)
})

test('an agent learns through a Tinker service, by the same loop', async () => {
  const agent = smallAgents.openai
  const rewards = await learn({ name: 'over tinker', agent, steps: 12, overTinker: true })
  expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 3)) + 0.3)
})

describe.each(Object.entries<SmallAgent>(smallAgents))('%s', (name, agent) => {
  test('trains on the embedded backend', async () => {
    const rewards = await learn({ name, agent, steps: 2, served: name.includes('LangGraph') })
    expect(rewards).toHaveLength(2)
    expect(rewards.every(Number.isFinite)).toBe(true)
  })
})
