import { describe, expect, test } from 'vitest'

import { listDataset } from '../../src/index.ts'
import { letterDataset, letterTasks } from '../support/letters.ts'
import { batches, flat, run, varied } from '../support/watched-run.ts'

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
