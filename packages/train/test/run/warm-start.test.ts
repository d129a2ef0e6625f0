import { describe, expect, test } from 'vitest'

import { train, type SupervisedSettings, type TrainingConfig } from '../../src/index.ts'
import { letterDataset, letterTraining, rightReply } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { metricsOf, newPlace, trainThere, weightsOf } from '../support/runs.ts'

const demonstrations = (): SupervisedSettings => ({
  examples: Array.from('abcdef', (task) => ({
    conversation: {
      messages: [
        { role: 'user', content: task },
        { role: 'assistant', content: rightReply(task) },
      ],
    },
  })),
  batchSize: 3,
  epochs: 4,
  optimizer: { learningRate: 0.2 },
  checkpoints: { every: 2 },
})

const config = (): Partial<TrainingConfig> => ({
  dataset: letterDataset({ epochs: 1 }),
  warmStart: demonstrations(),
  evaluations: [{ name: 'held', dataset: letterDataset({ epochs: 1 }) }],
  checkpoints: { every: 1 },
})

describe('a warm start', () => {
  test('trains on demonstrations first; the policy that begins to play is better for it', async () => {
    const losses: number[] = []
    const { reports } = await trainThere(newPlace(), config(), {
      observer(event) {
        if (event.type === 'warm_start')
          losses.push(event.report.values['train_mean_nll'] as number)
      },
    })
    expect(losses).toHaveLength(8)
    expect(losses.at(-1)!).toBeLessThan(losses[0]!)
    const warm = reports[0]!.evaluations[0]!.values['env/all/reward/total'] as number
    const { warmStart: _, ...without } = config()
    const plain = await trainThere(newPlace(), without)
    const before = plain.reports[0]!.evaluations[0]!.values['env/all/reward/total'] as number
    expect(warm).toBeGreaterThan(2 * before)
  })

  test('is a run of its own; the training begins with its weights and a new optimizer', async () => {
    const place = newPlace()
    const { backend, calls } = recordingBackend(place.backend)
    await trainThere({ ...place, backend }, config())
    const learners = calls.filter((call) => call.startsWith('learner'))
    expect(learners).toEqual(['learner', 'learner from final without optimizer'])
    const warm = await place.index.run('letters-warm-start')
    expect(warm.summary).toMatchObject({ status: 'completed', step: 7 })
    expect(warm.checkpoints.map(({ name }) => name)).toEqual([
      '000002',
      '000004',
      '000006',
      '000008',
      'final',
    ])
  })

  test('stopped or killed in the middle, it goes on where it was, to the same bytes', async () => {
    const whole = newPlace()
    const { result } = await trainThere(whole, config())
    const place = newPlace()
    const stop = new AbortController()
    const stopped = await trainThere(place, config(), {
      stop: stop.signal,
      observer(event) {
        if (event.type === 'warm_start' && event.report.step === 2) stop.abort()
      },
    })
    expect(stopped).toMatchObject({ reports: [], result: { end: 'interrupted', steps: 0 } })
    const abort = new AbortController()
    const killed = trainThere(place, config(), {
      start: 'resume',
      signal: abort.signal,
      observer(event) {
        if (event.type === 'warm_start' && event.report.step === 5) abort.abort(new Error('killed'))
      },
    })
    await expect(killed).rejects.toThrow('killed')
    const { backend, calls } = recordingBackend(place.backend)
    const resumed = await trainThere({ ...place, backend }, config(), { start: 'resume' })
    expect(calls[0]).toMatch(/^learner from 00000[46]$/)
    expect(await weightsOf(place.backend, resumed.result.checkpoint!.sampling!)).toBe(
      await weightsOf(whole.backend, result.checkpoint!.sampling!),
    )
    for (const run of ['letters', 'letters-warm-start'])
      expect(await metricsOf(place, run)).toEqual(await metricsOf(whole, run))
  })

  test('is not made again when the training goes on from a step of its own', async () => {
    const place = newPlace()
    const run = train(letterTraining({ ...place, ...config() }))
    for await (const { step } of run) if (step === 0) break
    await run.finish()
    const { backend, calls } = recordingBackend(place.backend)
    await trainThere({ ...place, backend }, config(), { start: 'resume' })
    expect(calls.filter((call) => call.startsWith('learner'))).toEqual([
      expect.stringMatching(/^learner from 00000[12]$/),
    ])
  })
})
