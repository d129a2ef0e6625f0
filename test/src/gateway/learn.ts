import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import {
  agentSource,
  createGateway,
  serveGateway,
  type AgentSourceOptions,
  type Gateway,
} from '@tiltyard/gateway'
import { memoryRunIndex } from '@tiltyard/testkit'
import { tinkerServer } from '@tiltyard/tinker-server'
import { defineTraining, listDataset, train } from '@tiltyard/train'

import type { SmallAgent } from './agents.ts'
import { lettersRenderer } from './letters.ts'
import { planned, shareOfVowels, singing, tinyBackend } from './singing.ts'

type SongTask = (typeof singing)[number]
type Singer = AgentSourceOptions<SongTask>['agent']

/** Key of the workers that play for remote agents. */
export const WORKER_KEY = 'key-of-the-workers'

/** An agent of a few lines that sings, by `fetch` alone or by the network. */
export const singer =
  (agent: SmallAgent, served = false) =>
  (): Singer =>
  async ({ prompt }, { model, signal }) => {
    const reached = served ? { ...model, fetch } : model
    return shareOfVowels(await agent({ model: reached, prompt, tools: [], stream: true, signal }))
  }

/** Trains the agent's model for 12 steps on the embedded backend, or on that one behind the Tinker protocol; gives the mean reward of each. */
export async function learn(
  agent: (gateway: Gateway) => Singer,
  { overTinker = false } = {},
): Promise<readonly number[]> {
  const folder = await mkdtemp(join(tmpdir(), 'tiltyard-learning-'))
  const gateway = createGateway({ workerKey: WORKER_KEY })
  const server = await serveGateway(gateway)
  const embedded = tinyBackend(folder)
  const tinker = overTinker ? tinkerServer({ backend: embedded }) : undefined
  const backend =
    tinker === undefined
      ? embedded
      : tinkerBackend({ baseUrl: await tinker.listen(), apiKey: 'tml-on-this-machine' })
  const source = agentSource({ gateway, tasks: singing, agent: agent(gateway) })
  const training = defineTraining({
    run: 'vowels',
    index: memoryRunIndex(),
    backend,
    model: 'tiny',
    adaptation: 'full',
    renderer: lettersRenderer(),
    dataset: listDataset({ name: 'vowels', groupsPerBatch: 2, tasks: await planned(source) }),
    steps: 12,
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
    await server.close()
    await rm(folder, { recursive: true })
  }
  return rewards
}

/** How much better the last three steps are than the first three. */
export function progress(rewards: readonly number[]): number {
  const mean = (part: readonly number[]) =>
    part.reduce((sum, value) => sum + value, 0) / part.length
  return mean(rewards.slice(-3)) - mean(rewards.slice(0, 3))
}
