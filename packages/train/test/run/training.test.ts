import { describe, expect, test } from 'vitest'

import { train } from '../../src/index.ts'
import { letterDataset, letterTraining } from '../support/letters.ts'

describe('a training', () => {
  test('teaches the policy its tasks', async () => {
    const training = letterTraining({
      dataset: letterDataset({ epochs: 20 }),
      evaluations: [{ name: 'letters', dataset: letterDataset({ epochs: 1 }) }],
    })
    const run = train(training)
    const rewards: (number | null | undefined)[] = []
    for await (const report of run) rewards.push(report.values['env/all/reward/total'])
    const { evaluations, checkpoint, steps } = await run.finish()
    console.log(rewards, evaluations[0]!.values, checkpoint, steps)
    expect(rewards).toHaveLength(40)
  })
})
