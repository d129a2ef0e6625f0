import type { TaskRef } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { listDataset } from '../../src/index.ts'
import { letterDataset, letterTasks } from '../support/letters.ts'
import { newPlace, trainThere } from '../support/runs.ts'
import { batches, flat, run, shape, varied } from '../support/watched-run.ts'

describe('synchronous training', () => {
  test('statement 85: a sampler first; then, batch by batch, forward-backward, optimizer, sampler', async () => {
    const { calls } = await run({ dataset: batches('abcd', 2) })
    expect(shape(calls)).toEqual([
      'learner',
      'publish',
      'forwardBackward',
      'optimStep',
      'publish',
      'forwardBackward',
      'optimStep',
      'publish',
      'save',
      'publish',
      'close',
    ])
  })

  test('statement 84: rolling and full checkpoints by their cadence, then the final one', async () => {
    const { events, calls, result } = await run({
      dataset: batches('abcde', 1),
      checkpoints: { every: 2, rolling: 1 },
    })
    const saved = events.flatMap((event) =>
      event.type === 'checkpoint'
        ? [`${event.name}${event.deleted === true ? ' deleted' : ''}`]
        : [],
    )
    expect(saved).toEqual([
      '000001',
      '000002',
      '000003',
      '000001 deleted',
      '000004',
      '000005',
      '000003 deleted',
      'final',
      '000005 deleted',
    ])
    const kinds = events.flatMap((event) =>
      event.type === 'checkpoint' && event.deleted !== true
        ? [[event.name, event.step, event.sampling === undefined ? 'rolling' : 'full']]
        : [],
    )
    expect(kinds).toEqual([
      ['000001', 1, 'rolling'],
      ['000002', 2, 'full'],
      ['000003', 3, 'rolling'],
      ['000004', 4, 'full'],
      ['000005', 5, 'rolling'],
      ['final', 5, 'full'],
    ])
    expect(result.checkpoint).toMatchObject({ name: 'final', step: 5, final: true })
    // A full checkpoint publishes the sampler that plays on.
    expect(calls.filter((call) => call.startsWith('publish')).slice(0, 4)).toEqual([
      'publish',
      'publish',
      'publish 000002',
      'publish',
    ])
  })

  test('statement 84: going on after step 2, the first full checkpoint is 000004', async () => {
    const place = newPlace()
    const config = {
      dataset: batches('abcde', 1),
      checkpoints: { every: 2, rolling: 1 },
      evalEvery: 0,
    } as const
    const first = await trainThere(place, { ...config, steps: 2 })
    expect(first.result.checkpoint).toMatchObject({ step: 2 })
    const before = place.index.events('letters').length
    await trainThere(place, config, { start: 'resume' })
    const saved = place.index
      .events('letters')
      .slice(before)
      .flatMap((event) =>
        event.type === 'checkpoint' && event.deleted !== true
          ? [[event.name, event.sampling === undefined ? 'rolling' : 'full']]
          : [],
      )
    expect(saved).toEqual([
      ['000003', 'rolling'],
      ['000004', 'full'],
      ['000005', 'rolling'],
      ['final', 'full'],
    ])
  })

  test('statement 83: evaluated before steps 0, 2 and 4, and after the last', async () => {
    const { reports, result } = await run({
      dataset: batches('abcdef', 1),
      evaluations: [
        { name: 'held', dataset: letterDataset({ letters: 'ab', epochs: 1, size: 1 }) },
      ],
      evalEvery: 2,
    })
    const evaluated = reports.flatMap(({ step, evaluations }) =>
      evaluations.map((evaluation) => [step, evaluation.step]),
    )
    expect(evaluated).toEqual([
      [0, 0],
      [2, 2],
      [4, 4],
    ])
    expect(result.evaluations.map(({ name, step }) => [name, step])).toEqual([['held', 6]])
  })

  test('statement 86: a batch whose groups all fail makes no update; its row is logged, the next batch trains', async () => {
    const source = varied({
      onOpen: ({ id }: TaskRef) => {
        if (id === 'a') throw new Error('the database is gone')
      },
    })
    const { calls, reports, events } = await run({
      dataset: batches('ab', 1, source),
      rollout: { failures: { kind: 'minGroup', atLeast: 1 } },
    })
    expect(reports.map(({ updates }) => updates)).toEqual([0, 1])
    expect(shape(calls)).toEqual([
      'learner',
      'publish',
      'forwardBackward',
      'optimStep',
      'publish',
      'save',
      'publish',
      'close',
    ])
    expect(reports[0]!.warnings.map(({ code }) => code)).toContain('skipped_step')
    const rows = events.flatMap((event) => (event.type === 'metrics' ? [event.step] : []))
    expect(rows).toEqual([0, 1])
    expect(reports[0]!.values).toMatchObject({
      'groups/dropped': 1,
      'rollout_errors/Error': 2,
      'rollout_errors/total': 2,
      'rollout_errors/groups_skipped': 1,
    })
  })

  test('statements 40, 63: a batch of constant groups is skipped and its row logged', async () => {
    const { calls, reports, events } = await run({ dataset: batches('ab', 2, flat()) })
    expect(reports).toHaveLength(1)
    expect(reports[0]).toMatchObject({
      updates: 0,
      values: { 'groups/constant': 2, 'optim/updates': 0 },
    })
    expect(calls).not.toContain('optimStep')
    expect(events).toContainEqual(expect.objectContaining({ type: 'metrics', step: 0 }))
  })

  test.each([
    {},
    { pipeline: { minibatches: 2 } },
    { keepConstantGroups: true, advantages: { withoutTokens: 'keep' } } as const,
  ])(
    'statement 63: a batch whose prompts leave no room to sample is skipped: %j',
    async (config) => {
      const dataset = batches('ab', 2)
      const { calls, reports, events } = await run({
        ...config,
        dataset,
        limits: { episodeTokens: 2 },
      })
      expect(reports).toMatchObject([{ updates: 0, values: { 'data/datums': 0 } }])
      expect(reports[0]!.warnings.map(({ code }) => code)).toEqual(['no_room', 'skipped_step'])
      expect(shape(calls)).toEqual(['learner', 'publish', 'save', 'publish', 'close'])
      expect(events).toContainEqual(expect.objectContaining({ type: 'metrics', step: 0 }))
    },
  )

  test('statement 61: substeps cut the data in even parts, each with an optimizer step', async () => {
    const { calls } = await run({
      dataset: listDataset({
        name: 'l',
        tasks: letterTasks('a', 10, varied()),
        groupsPerBatch: 1,
        epochs: 1,
      }),
      pipeline: { substeps: 4 },
    })
    expect(calls.slice(2, 10)).toEqual([
      'forwardBackward 2',
      'optimStep',
      'forwardBackward 3',
      'optimStep',
      'forwardBackward 2',
      'optimStep',
      'forwardBackward 3',
      'optimStep',
    ])
  })

  test('statement 61: 2 data with 10 substeps make 2 optimizer steps', async () => {
    const { reports } = await run({ dataset: batches('a', 1), pipeline: { substeps: 10 } })
    expect(reports.map(({ updates }) => updates)).toEqual([2])
  })

  test('a token budget packs a step into several calls and one optimizer step', async () => {
    const { calls, data } = await run({ dataset: batches('abcd', 4), tokensPerCall: 4 })
    const step = calls.slice(2, calls.indexOf('optimStep') + 1)
    expect(step.length).toBeGreaterThan(3)
    expect(
      data.every((batch) => batch.reduce((sum, { targets }) => sum + targets.length, 0) <= 4),
    ).toBe(true)
    expect(data.flat()).toHaveLength(8)
  })
})
