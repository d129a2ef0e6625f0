import { describe, expect, test } from 'vitest'

import { letterSource } from '../support/letters.ts'
import { batches, flat, run } from '../support/watched-run.ts'

describe('streaming training', () => {
  test('statement 87: 4 groups, 2 substeps, 2 minibatches: forward-backward twice, optimizer, and again', async () => {
    const { calls } = await run({
      dataset: batches('abcd', 4),
      pipeline: { substeps: 2, minibatches: 2 },
    })
    expect(calls.slice(2, 8)).toEqual([
      'forwardBackward 2',
      'forwardBackward 2',
      'optimStep',
      'forwardBackward 2',
      'forwardBackward 2',
      'optimStep',
    ])
  })

  test.each([
    [4, { minibatches: 3 }],
    [5, { substeps: 2, minibatches: 2 }],
    [4, { minibatches: 3, groupsPerStep: 4 }],
  ])(
    'statement 88: %i groups that do not divide into %j are refused at the start',
    async (groups, pipeline) => {
      const dataset = batches('abcdef'.slice(0, groups), groups)
      await expect(run({ dataset, pipeline })).rejects.toThrow(
        /does not divide into .* minibatches/,
      )
    },
  )

  test('statement 89: a short batch later on trains on what it has', async () => {
    const { reports } = await run({ dataset: batches('abcdefg', 4), pipeline: { minibatches: 4 } })
    expect(reports.map(({ values }) => values['groups/trained'])).toEqual([4, 3])
    expect(reports.map(({ updates }) => updates)).toEqual([1, 1])
  })

  test('statement 89: when playing throws for good, the run rejects with that error', async () => {
    const source = letterSource({
      onOpen: () => {
        throw new Error('the door is locked')
      },
    })
    await expect(
      run({
        dataset: batches('abcd', 4, source),
        pipeline: { minibatches: 4 },
        rollout: { failures: { kind: 'failFast' } },
      }),
    ).rejects.toThrow('the door is locked')
  })

  test('statement 90: with every group filtered there is no optimizer step, and a row', async () => {
    const { calls, reports } = await run({
      dataset: batches('abcd', 4, flat()),
      pipeline: { minibatches: 2 },
    })
    expect(calls).not.toContain('optimStep')
    expect(reports).toHaveLength(1)
  })
})
