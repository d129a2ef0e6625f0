import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { train } from '@tiltyard/train'
import { expect, test } from 'vitest'

import { agentTraining } from '../../../apps/trainer/recipes/agent.ts'

test('the agent recipe: an agent behind the gateway gets better, and is evaluated by running it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tiltyard-agent-'))
  try {
    const { config } = await agentTraining(folder)
    const rewards: number[] = []
    const run = train({ specVersion: 'training/1', config: { ...config, steps: 12 } })
    for await (const { values } of run) rewards.push(values['env/all/reward/total']!)
    const { evaluations } = await run.finish()
    await config.backend.close()
    await config.index.close()
    expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 3)) + 0.1)
    expect(evaluations.length).toBeGreaterThan(0)
  } finally {
    await rm(folder, { recursive: true })
  }
})

function mean(part: readonly number[]): number {
  return part.reduce((sum, value) => sum + value, 0) / part.length
}
