import type { Backend } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { letterDataset } from '../support/letters.ts'
import { newPlace, trainThere } from '../support/runs.ts'

test('F74: full and rolling checkpoints are kept for the time that each is given, the final one for good', async () => {
  const place = newPlace()
  const kept: [string, number | undefined][] = []
  const backend: Backend = {
    ...place.backend,
    async learner(options) {
      const learner = await place.backend.learner(options)
      return {
        ...learner,
        steps: 0,
        save(name, saving) {
          kept.push([name.slice(-6), saving?.ttlSeconds])
          return learner.save(name, saving)
        },
      }
    },
  }
  await trainThere(
    { ...place, backend },
    {
      dataset: letterDataset({ epochs: 2 }),
      checkpoints: { every: 3, rolling: 1, ttlSeconds: 700, rollingTtlSeconds: 50 },
    },
  )
  expect(kept).toEqual([
    ['000001', 50],
    ['000002', 50],
    ['000003', 700],
    ['000004', 50],
    ['-final', undefined],
  ])
})
