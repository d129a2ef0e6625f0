import { stringifyRecord } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { listDataset } from '../../src/index.ts'
import { letterDataset, letterSource, letterTasks } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { newPlace, trainThere } from '../support/runs.ts'

const dataset = () => letterDataset({ epochs: 3 })

describe('bad input', () => {
  test('F32: a reward that is not a number is unscored, and nothing that is not finite is sent', async () => {
    const place = newPlace()
    const { backend, data } = recordingBackend(place.backend)
    let plays = 0
    const source = letterSource({
      score() {
        plays += 1
        return plays % 3 === 0 ? Number.NaN : plays % 2
      },
    })
    const { reports } = await trainThere(
      { ...place, backend },
      { dataset: letterDataset({ source, epochs: 1 }) },
    )
    expect(reports[0]!.values['episodes/unscored']).toBeGreaterThan(0)
    expect(data.length).toBeGreaterThan(0)
    const numbers = data
      .flat()
      .flatMap(({ advantages, logprobs }) => [...advantages!, ...logprobs!])
    expect(numbers.every(Number.isFinite)).toBe(true)
  })

  test('an empty batch and one of episodes that sampled nothing skip their steps', async () => {
    const letters = letterDataset({ epochs: 2, size: 2, groupsPerBatch: 6 })
    const empty = {
      ...letters,
      batch: async (step: number, seed: number) =>
        step === 0 ? [] : await letters.batch(step, seed),
    }
    const { reports } = await trainThere(newPlace(), {
      dataset: empty,
      limits: { contextWindow: 1 },
    })
    expect(reports.map(({ updates }) => updates)).toEqual([0, 0])
    expect(reports[1]!.values).toMatchObject({ 'groups/trained': 0, 'data/datums': 0 })
  })

  test('groups of one have nothing to compare and skip the step', async () => {
    const { reports } = await trainThere(newPlace(), {
      dataset: letterDataset({ size: 1, epochs: 1 }),
    })
    expect(reports.map(({ updates, values }) => [updates, values['groups/alone']])).toEqual([
      [0, 3],
      [0, 3],
    ])
  })

  test('a dataset shorter than a batch trains on what it has', async () => {
    const tasks = letterTasks('ab', 8)
    const short = listDataset({ name: 'short', tasks, groupsPerBatch: 8, epochs: 1 })
    const { reports } = await trainThere(newPlace(), { dataset: short })
    expect(reports.map(({ groups }) => groups.length)).toEqual([2])
  })

  test('a dataset without a batch is refused before the run is claimed', async () => {
    const place = newPlace()
    const none = { ...letterDataset(), batches: 0, batch: async () => undefined }
    await expect(trainThere(place, { dataset: none })).rejects.toThrow(
      'the dataset letters has no batch',
    )
    await expect(place.index.run('letters')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('F37: a learner that is 0.3 nats off is measured and warned of at the first step', async () => {
    const place = newPlace()
    const { backend } = recordingBackend(place.backend, {
      answer: (result) => ({
        ...result,
        logprobs: result.logprobs.map((each) => each.map((logprob) => logprob + 0.3)),
      }),
    })
    const { reports } = await trainThere(
      { ...place, backend },
      { dataset: letterDataset({ epochs: 1, size: 24 }) },
    )
    expect(reports[0]!.values['optim/logprob_diff_mean']).toBeCloseTo(0.3, 5)
    expect(reports[0]!.warnings.map(({ code }) => code)).toContain('logprob_gap')
  })

  test('statement 79: a loss that is not finite is null in the record, with a flag and a warning', async () => {
    const place = newPlace()
    const { backend } = recordingBackend(place.backend, {
      answer: (result) => ({ ...result, loss: Number.NaN }),
    })
    const { reports } = await trainThere({ ...place, backend }, { dataset: dataset(), steps: 1 })
    expect(reports[0]!.values).toMatchObject({ 'optim/loss': null, 'optim/loss:not_finite': 1 })
    expect(reports[0]!.warnings.map(({ code }) => code)).toContain('not_finite')
    const { metrics } = await place.index.run('letters')
    expect(metrics).toHaveLength(1)
    // As an index writes a line: it refuses what JSON has no text for.
    const line = stringifyRecord(metrics[0]!.values)
    expect(JSON.parse(line)).toMatchObject({ 'optim/loss': null, 'optim/loss:not_finite': 1 })
  })

  test('§18.85 steps in a row with nothing to train end the run when it says how many, and it can go on', async () => {
    const place = newPlace()
    let plays = 0
    // A group's eight episodes are alike in the first step and from the third on.
    const source = letterSource({ score: () => (Math.floor(plays++ / 8) === 1 ? plays % 2 : 0) })
    const settings = {
      dataset: letterDataset({ source, groupsPerBatch: 1, epochs: 8 }),
      steps: 6,
      rollout: { slots: 1 },
      checkpoints: { every: 1 },
    }
    const stopped = trainThere(place, { ...settings, maxSkippedSteps: 2 })
    await expect(stopped).rejects.toMatchObject({
      code: 'NOTHING_TO_TRAIN',
      message: expect.stringContaining('2 steps in a row had nothing to train'),
    })
    const { metrics, summary } = await place.index.run('letters')
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3])
    expect(summary.status).toBe('failed')
    const { reports } = await trainThere(place, settings, { start: 'resume' })
    expect(reports.map(({ step }) => step)).toEqual([4, 5])
  })

  test('F30: a step whose replies are cut and whose groups are constant says both, in the log too', async () => {
    const warned: string[] = []
    const logger = {
      debug() {},
      info() {},
      error() {},
      warn: (message: string) => warned.push(message),
    }
    const source = letterSource({ score: () => 0 })
    const { reports } = await trainThere(
      newPlace(),
      { dataset: letterDataset({ source, epochs: 1 }), limits: { replyTokens: 1 } },
      { logger },
    )
    const codes = reports[0]!.warnings.map(({ code }) => code)
    expect(codes).toEqual(
      expect.arrayContaining(['all_groups_constant', 'replies_cut', 'skipped_step']),
    )
    expect(warned.join('\n')).toMatch(/all 3 groups have constant rewards.*\n.*replies were cut/)
  })
})
