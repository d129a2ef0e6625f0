import { randomStream, type Backend, type Dataset, type RunSummary } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { train, type TrainingConfig } from '../../src/index.ts'
import { telling } from '../support/interrupted-place.ts'
import { letterDataset, letterRenderer, letterTraining } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { metricsOf, newPlace, trainThere, weightsOf, type Place } from '../support/runs.ts'

const config = (): Partial<TrainingConfig> => ({
  dataset: letterDataset({ epochs: 3 }),
  evaluations: [{ name: 'held', dataset: letterDataset({ letters: 'ab', epochs: 1, size: 2 }) }],
  evalEvery: 2,
  checkpoints: { every: 2, rolling: 1 },
})

/** Runs until so many steps were reported, then leaves the loop. */
async function trainSteps(place: Place, steps: number, more: Partial<TrainingConfig> = {}) {
  const run = train(letterTraining({ ...place, ...config(), ...more }))
  for await (const { step } of run) if (step + 1 === steps) break
  return await run.finish()
}

const resume = { start: 'resume', takeOver: true } as const

/** Metrics and final weights of a run that nothing disturbed. */
async function undisturbed(more: Partial<TrainingConfig> = {}) {
  const place = newPlace()
  const { result, reports } = await trainThere(place, { ...config(), ...more })
  return {
    reports,
    metrics: await metricsOf(place),
    weights: await weightsOf(place.backend, result.checkpoint!.sampling!),
  }
}

/** Sums of a run, wall time apart. */
const countsOf = async ({ index }: Place) => {
  const { seconds: _, ...sums } = (await index.run('letters')).steps.at(-1)!.totals
  return sums
}

/**
 * Runs the training, or goes on with it, and aborts at the given one of the moments at which a call begins or ends, counted
 * from 1; says whether it came to its end all the same, and how many moments there were.
 */
async function trainUntil(place: Place, moment: number) {
  const abort = new AbortController()
  const reason = new Error('killed')
  let moments = 0
  const there = telling(place, () => {
    moments += 1
    if (moments === moment) abort.abort(reason)
  })
  const control = { start: 'either', takeOver: true, signal: abort.signal } as const
  try {
    await trainThere(there, config(), control)
    return { trained: true, moments }
  } catch (error) {
    if (error === reason) return { trained: false, moments }
    throw error
  }
}

describe('going on with a run', () => {
  test('statement 97, F38: the next batch is the next one, the optimizer is back, the next step equals that of the undisturbed run', async () => {
    const whole = await undisturbed()
    const place = newPlace()
    const left = await trainSteps(place, 3)
    expect(left).toMatchObject({ end: 'interrupted', steps: 3 })
    const recording = recordingBackend(place.backend)
    const read: number[] = []
    const settings = config()
    const dataset: Dataset = {
      ...settings.dataset!,
      batch(step, seed) {
        read.push(step)
        return settings.dataset!.batch(step, seed)
      },
    }
    const { reports, result } = await trainThere(
      { ...place, backend: recording.backend },
      { ...settings, dataset, from: { path: 'elsewhere', kind: 'training' } },
      resume,
    )
    expect(recording.calls[0]).toBe('learner from 000003')
    // The first is looked at, to check the set-up.
    expect(read).toEqual([0, 3, 4, 5])
    expect(reports.map(({ step }) => step)).toEqual([3, 4, 5])
    expect(reports.map(({ values }) => values)).toEqual(
      whole.reports.slice(3).map(({ values }) => values),
    )
    expect(await weightsOf(place.backend, result.checkpoint!.sampling!)).toBe(whole.weights)
    expect(await metricsOf(place)).toEqual(whole.metrics)
  })

  test('F38: with a cold optimizer the step differs, and a warning says so', async () => {
    const whole = await undisturbed()
    const place = newPlace()
    await trainSteps(place, 3)
    const cold: Backend = {
      ...place.backend,
      async learner(options) {
        const learner = await place.backend.learner({ ...options, optimizer: false })
        return { ...learner, steps: 0 }
      },
    }
    const { reports } = await trainThere({ ...place, backend: cold }, config(), resume)
    expect(reports[0]!.warnings).toContainEqual({
      code: 'cold_optimizer',
      message:
        'the optimizer did not come back with 000003: its averages begin anew after 3 optimizer steps',
    })
    expect(reports[1]!.values).not.toEqual(whole.reports[4]!.values)
  })

  test('aborted at any moment and taken up again, a run gives the same metrics and the same weights', async () => {
    const whole = await undisturbed()
    const { moments } = await trainUntil(newPlace(), Infinity)
    const random = randomStream(11, 'moments')
    for (let round = 0; round < 15; round += 1) {
      const place = newPlace()
      let aborts = 0
      for (let attempt = 0; ; attempt += 1) {
        // The last tenth is left out, where an abort comes too late to strike.
        const moment = attempt > 6 ? Infinity : 1 + Math.floor(0.9 * moments * random.next())
        const { trained } = await trainUntil(place, moment)
        if (trained) break
        aborts += 1
      }
      expect(aborts).toBeGreaterThan(0)
      const { checkpoints } = await place.index.run('letters')
      expect(await weightsOf(place.backend, checkpoints.at(-1)!.sampling!)).toBe(whole.weights)
      expect(await metricsOf(place)).toEqual(whole.metrics)
    }
  })

  test('statement 96: a checkpoint whose weights are gone is passed over with a plain message', async () => {
    const place = newPlace()
    const left = await trainSteps(place, 4)
    await place.backend.checkpoints().delete(left.checkpoint!.training!)
    const { reports } = await trainThere(place, config(), resume)
    expect(reports[0]!.step).toBe(3)
    expect(reports[0]!.warnings[0]).toEqual({
      code: 'older_checkpoint',
      message:
        'unusable checkpoints of "letters": 000004 (its weights are gone); the run goes on from 000003',
    })
    const { metrics } = await place.index.run('letters')
    const steps = metrics.flatMap(({ split, step }) => (split === 'train' ? [step] : []))
    expect(steps).toEqual([0, 1, 2, 3, 4, 5])
  })

  test('with no usable checkpoint it begins again, and says so', async () => {
    const place = newPlace()
    await trainSteps(place, 3)
    const store = place.backend.checkpoints()
    for (const info of await store.list()) await store.delete(info)
    const { reports } = await trainThere(place, config(), resume)
    expect(reports[0]!.step).toBe(0)
    expect(reports[0]!.warnings[0]!.message).toMatch(/the run begins again$/)
  })

  test('F39: the newest checkpoint is the one of the most steps, by number', async () => {
    const place = newPlace()
    const dataset = letterDataset({ letters: 'ab', size: 2, groupsPerBatch: 1, epochs: 60 })
    const recording = recordingBackend(place.backend)
    await trainThere(place, {
      dataset,
      checkpoints: { every: 1 },
      steps: 101,
      evalEvery: 0,
      keepConstantGroups: true,
    })
    await trainThere(
      { ...place, backend: recording.backend },
      { dataset, steps: 102, checkpoints: { every: 1 }, evalEvery: 0, keepConstantGroups: true },
      resume,
    )
    expect(recording.calls[0]).toBe('learner from 000101')
  })

  test('F40: what was played and not trained at the stop is played again; each task trains once', async () => {
    const place = newPlace()
    let played = 0
    const stop = new AbortController()
    const first = train(letterTraining({ ...place, ...config() }), {
      stop: stop.signal,
      observer(event) {
        if (event.type !== 'rollout' || event.event.type !== 'episode') return
        const { key } = event.event.episode
        if (key.split === 'train' && key.step === 2 && (played += 1) === 5) stop.abort()
      },
    })
    expect(await first.finish()).toMatchObject({ end: 'interrupted', steps: 2 })
    await trainThere(place, config(), resume)
    const trained = new Map<string, number>()
    for await (const episode of place.index.episodes('letters', { split: 'train' })) {
      if (episode.trained === true || episode.trained === 'constant') {
        const { step, group, member } = episode.key
        const task = `${step}/${group}/${member}`
        trained.set(task, (trained.get(task) ?? 0) + 1)
      }
    }
    expect(trained.size).toBe(6 * 3 * 8)
    expect(new Set(trained.values())).toEqual(new Set([1]))
  })

  test('F41: sums add up over restarts, and no step of the metrics is there twice', async () => {
    const whole = newPlace()
    await trainThere(whole, config())
    const place = newPlace()
    await trainSteps(place, 2)
    await trainSteps(place, 4, {}).catch(() => {})
    await trainThere(place, config(), resume)
    expect(await countsOf(place)).toEqual(await countsOf(whole))
    const { steps, metrics } = await place.index.run('letters')
    expect(steps.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5])
    expect(steps.at(-1)!.totals['seconds']).toBeGreaterThan(0)
    const rows = metrics.map(({ split, evaluation, step }) => `${split}/${evaluation}/${step}`)
    expect(new Set(rows).size).toBe(rows.length)
  })

  test('a changed renderer, dataset, objective, model or seed is refused unless it is allowed', async () => {
    const place = newPlace()
    await trainSteps(place, 2)
    const other: readonly Partial<TrainingConfig>[] = [
      { renderer: { ...letterRenderer(), fingerprint: 'letters:2' } },
      { dataset: letterDataset({ letters: 'abc', epochs: 6 }) },
      { loss: { name: 'cispo' } },
      { advantages: { scale: 'std' } },
      { adaptation: { rank: 4 } },
      { seed: 8 },
    ]
    const again = (more: Partial<TrainingConfig>) =>
      trainThere(place, { ...config(), ...more }, resume)
    for (const change of other)
      await expect(again(change)).rejects.toThrow(/the run was begun with/)
    await expect(again({ loss: { name: 'cispo' } })).rejects.toThrow('allowChanges: ["loss"]')
    const { reports } = await trainThere(
      place,
      { ...config(), loss: { name: 'cispo' } },
      { ...resume, allowChanges: ['loss'] },
    )
    expect(reports[0]!.step).toBe(2)
  })

  test('another executor is a warning: the same bytes are promised on one only', async () => {
    const place = newPlace()
    await trainSteps(place, 2)
    const elsewhere: Backend = {
      ...place.backend,
      describe: async () => ({ ...(await place.backend.describe()), executor: 'another machine' }),
    }
    await expect(
      trainThere({ ...place, backend: elsewhere }, config(), { ...resume, exact: true }),
    ).rejects.toThrow('goes on on "another machine"')
    const { reports } = await trainThere({ ...place, backend: elsewhere }, config(), resume)
    expect(reports[0]!.warnings.map(({ code }) => code)).toContain('other_executor')
  })

  test('F81: going on reads the records of the run, and of no episode', async () => {
    const place = newPlace()
    await trainSteps(place, 3)
    const read: string[] = []
    const index = {
      ...place.index,
      episode: () => Promise.reject(new Error('an episode was read')),
      episodes() {
        read.push('episodes')
        return place.index.episodes('letters')
      },
    }
    const { reports } = await trainThere({ ...place, index }, config(), resume)
    expect(reports[0]!.step).toBe(3)
    expect(read).toEqual([])
  })

  test('statement 100: a run with its final checkpoint is completed, and resuming it does nothing', async () => {
    const place = newPlace()
    const first = await trainThere(place, config())
    const listed: RunSummary[] = []
    for await (const summary of place.index.runs()) listed.push(summary)
    expect(listed).toMatchObject([{ name: 'letters', status: 'completed', step: 5 }])
    const metrics = await metricsOf(place)
    const again = await trainThere(place, config(), resume)
    expect(again.reports).toEqual([])
    expect(again.result).toMatchObject({
      end: 'completed',
      steps: 6,
      checkpoint: first.result.checkpoint,
    })
    expect(await metricsOf(place)).toEqual(metrics)
  })

  test('more steps than before go on from the final weights', async () => {
    const place = newPlace()
    await trainThere(place, { ...config(), steps: 3 })
    const { reports } = await trainThere(place, config(), resume)
    expect(reports.map(({ step }) => step)).toEqual([3, 4, 5])
  })

  test('a new run with a name that exists is refused, and so is resuming what is not there', async () => {
    const place = newPlace()
    await trainSteps(place, 1)
    await expect(trainThere(place, config())).rejects.toMatchObject({ code: 'STATE' })
    await expect(trainThere(newPlace(), config(), resume)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    })
    const { reports } = await trainThere(newPlace(), config(), { start: 'either' })
    expect(reports).toHaveLength(6)
  })

  test('with groupsPerStep a run goes on with the groups that it had not trained', async () => {
    const place = newPlace()
    const arrival: Partial<TrainingConfig> = {
      pipeline: { maxStaleness: 1, groupsPerStep: 2 },
      dataset: letterDataset({ epochs: 4, groupsPerBatch: 3 }),
      evalEvery: 0,
      checkpoints: { rolling: 1 },
    }
    await trainSteps(place, 3, arrival)
    const { result } = await trainThere(place, arrival, resume)
    expect(result).toMatchObject({ end: 'completed', batches: 8 })
    const groups = new Map<string, number>()
    for await (const episode of place.index.episodes('letters', { split: 'train' })) {
      const decided = episode.trained === true || episode.trained === 'constant'
      if (decided && episode.key.member === 0)
        groups.set(episode.task, (groups.get(episode.task) ?? 0) + 1)
    }
    // Four passes over six letters: each letter was decided four times.
    expect(Object.fromEntries(groups)).toEqual({ a: 4, b: 4, c: 4, d: 4, e: 4, f: 4 })
  })
})
