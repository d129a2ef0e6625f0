import type { TaskRef } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { listDataset, train, type StepReport, type TrainingConfig } from '../../src/index.ts'
import {
  letterBackend,
  letterDataset,
  letterSource,
  letterTasks,
  letterTraining,
  type LetterSourceOptions,
} from '../support/letters.ts'
import { recordingBackend, type RecordingOptions } from '../support/recording-backend.ts'
import { newPlace, trainThere } from '../support/runs.ts'

/** Rewards that differ within every group, whatever is replied. */
const varied = (options: LetterSourceOptions = {}) => {
  let plays = 0
  return letterSource({ ...options, score: () => (plays += 1) % 2 })
}
/** Rewards that are all equal. */
const flat = () => letterSource({ score: () => 0 })

async function run(config: Partial<TrainingConfig>, options: RecordingOptions = {}) {
  const index = memoryRunIndex()
  const recording = recordingBackend(letterBackend(), options)
  const training = letterTraining({
    index,
    backend: recording.backend,
    evalEvery: 0,
    ...config,
  })
  const reports: StepReport[] = []
  const running = train(training)
  for await (const report of running) reports.push(report)
  const result = await running.finish()
  return { ...recording, index, reports, result, events: index.events('letters') }
}

/** Learner calls without the numbers. */
const shape = (calls: readonly string[]) => calls.map((call) => call.split(' ')[0])
const batches = (letters: string, groupsPerBatch: number, source = varied()) =>
  listDataset({
    name: 'l',
    tasks: letterTasks(letters, 2, source),
    groupsPerBatch,
    epochs: 1,
    shuffle: false,
  })

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

describe('asynchronous training', () => {
  test.each([undefined, 2])(
    'statement 92: 3 batches of 2 groups make 3 steps, and a checkpoint is saved at the start; groups in a step: %s',
    async (groupsPerStep) => {
      const { reports, events } = await run({
        dataset: batches('abcdef', 2),
        pipeline: { maxStaleness: 1, ...(groupsPerStep === undefined ? {} : { groupsPerStep }) },
      })
      expect(reports.map(({ values }) => values['groups/trained'])).toEqual([2, 2, 2])
      const first = events.find((event) => event.type === 'checkpoint')
      expect(first).toMatchObject({ name: '000000', step: 0 })
    },
  )

  test('statement 93: of 6 groups 2 give nothing to learn: 2 steps of 2, and 3 batches read', async () => {
    const dull = flat()
    const lively = varied()
    const tasks = [
      ...letterTasks('b', 2, dull),
      ...letterTasks('acd', 2, lively),
      ...letterTasks('e', 2, dull),
      ...letterTasks('f', 2, lively),
    ]
    const { reports, result, events } = await run({
      dataset: listDataset({ name: 'l', tasks, groupsPerBatch: 2, epochs: 1, shuffle: false }),
      pipeline: { maxStaleness: 1, groupsPerStep: 2 },
    })
    expect(reports.map(({ values }) => values['groups/trained'])).toEqual([2, 2])
    expect(result).toMatchObject({ end: 'completed', steps: 2, batches: 3 })
    const final = events.findLast((event) => event.type === 'checkpoint')
    expect(final).toMatchObject({ name: 'final', step: 2 })
    const last = events.findLast((event) => event.type === 'step')
    expect(last).toMatchObject({ step: 1, position: { nextBatch: 3 } })
  })

  test.each([2, 3, 4])(
    'statement 94: with streaming, %i batches of 2 groups make as many optimizer steps',
    async (count) => {
      const { calls } = await run({
        dataset: batches('abcdefabcdef'.slice(0, 2 * count), 2),
        pipeline: { maxStaleness: 1, minibatches: 2 },
      })
      expect(calls.filter((call) => call === 'optimStep')).toHaveLength(count)
      expect(calls.filter((call) => call.startsWith('forwardBackward'))).toHaveLength(2 * count)
    },
  )

  test('statement 95: a checkpoint of step n is asked for before anything of step n + 1', async () => {
    let trained = 0
    let wake = () => {}
    const { calls } = await run(
      {
        dataset: batches('abcdef', 1),
        pipeline: { maxStaleness: 2 },
        checkpoints: { rolling: 1, atStart: false },
        keepConstantGroups: true,
      },
      {
        before(call) {
          if (!call.startsWith('forwardBackward')) return
          trained += 1
          wake()
        },
        // Each saving is answered only when the next step has begun to train.
        async afterSaving(call) {
          if (call === 'save final') return
          const step = Number(call.replace('save ', ''))
          if (step === 6 || trained > step) return
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        },
      },
    )
    const steps = [1, 2, 3, 4, 5, 6].flatMap((step) => [
      'forwardBackward 2',
      'optimStep',
      `save 00000${step}`,
    ])
    expect(calls.filter((call) => /^(forward|optim|save)/.test(call))).toEqual([
      ...steps,
      'save final',
    ])
  })

  test('no sample trains weights that are more than maxStaleness steps newer; the metric says how old it is', async () => {
    const { reports } = await run({
      dataset: letterDataset({ epochs: 3, groupsPerBatch: 2, source: varied() }),
      pipeline: { maxStaleness: 2 },
    })
    const lags = reports.flatMap(({ values }) => {
      const lag = values['staleness/steps_max']
      return typeof lag === 'number' ? [lag] : []
    })
    expect(Math.max(...lags)).toBeLessThanOrEqual(2)
    expect(Math.max(...lags)).toBeGreaterThan(0)
    for (const { step, values } of reports) {
      const oldest = values['sampling_client/step_min'] ?? step
      expect(step - oldest).toBeLessThanOrEqual(2)
    }
  })

  test('samplers are closed once nobody plays with them', async () => {
    const { open } = await run({
      dataset: letterDataset({ epochs: 2, groupsPerBatch: 2 }),
      pipeline: { maxStaleness: 2 },
      checkpoints: { every: 2 },
    })
    expect([...open]).toEqual([])
  })
})
