import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import type { Backend } from '@tiltyard/core'
import { train } from '@tiltyard/train'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { agentTraining } from '../../../apps/trainer/recipes/agent.ts'
import { progress } from './learn.ts'

const program = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))
const recipe = fileURLToPath(new URL('../../../apps/trainer/recipes/agent.ts', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-agent-'))
})
afterAll(async () => {
  await rm(folder, { recursive: true })
})

/** Runs the recipe's first 12 steps and its evaluation of the last weights. */
async function runRecipe(place: string, backend?: Backend) {
  const { config } = await agentTraining(join(folder, place), backend)
  const rewards: number[] = []
  const run = train({ specVersion: 'training/1', config: { ...config, steps: 12 } })
  for await (const { values } of run) rewards.push(values['env/all/reward/total']!)
  const { evaluations } = await run.finish()
  await config.backend.close()
  await config.index.close()
  return { rewards, evaluations }
}

test('the agent recipe: an agent behind the gateway gets better, and is evaluated by running it', async () => {
  const { rewards, evaluations } = await runRecipe('embedded')
  expect(progress(rewards)).toBeGreaterThan(0.1)
  expect(evaluations.map(({ name }) => name)).toEqual(['held-out'])
})

test('the agent recipe learns through a Tinker service, which `tiltyard serve tinker` is', async () => {
  const child = spawn(process.execPath, [program, 'serve', 'tinker', recipe], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  try {
    let baseUrl: string | undefined
    for await (const line of createInterface(child.stdout)) {
      baseUrl = /serving the Tinker protocol at (\S+)/.exec(line)?.[1]
      if (baseUrl !== undefined) break
    }
    const service = tinkerBackend({ baseUrl: baseUrl!, apiKey: 'tml-on-this-machine' })
    const { rewards, evaluations } = await runRecipe('service', service)
    expect(progress(rewards)).toBeGreaterThan(0.1)
    expect(evaluations.map(({ name }) => name)).toEqual(['held-out'])
  } finally {
    child.kill('SIGINT')
    expect((await closed)[0]).toBe(0)
  }
})
