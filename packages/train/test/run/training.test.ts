import { runGroupName, type TrainingEvent } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { evaluate, train, type EvaluationContext, type TrainingConfig } from '../../src/index.ts'
import { letterBackend, letterDataset, letterSource, letterTraining } from '../support/letters.ts'
import { recordingBackend } from '../support/recording-backend.ts'
import { metricsOf, newPlace, trainThere, weightsOf } from '../support/runs.ts'

const held = { name: 'held', dataset: letterDataset({ epochs: 1, size: 12 }) }
const rewardOf = (values: Readonly<Record<string, number | null>>) =>
  values['env/all/reward/total'] as number

const learning = (more: Partial<TrainingConfig> = {}): Partial<TrainingConfig> => ({
  dataset: letterDataset({ epochs: 24, size: 16 }),
  evaluations: [held],
  evalEvery: 48,
  optimizer: { learningRate: 0.3 },
  advantages: { scale: 'std' },
  ...more,
})

/** What a run with this seed comes to. */
const withSeed = async (seed: number) => {
  const place = newPlace()
  const { result } = await trainThere(place, { seed, dataset: letterDataset({ epochs: 1 }) })
  const weights = await weightsOf(place.backend, result.checkpoint!.sampling!)
  return { metrics: await metricsOf(place), weights }
}

/** What a run with so many slots and such openings comes to. */
const withSlots = async (slots: number, delay: () => number) => {
  const place = newPlace()
  const source = letterSource({
    onOpen: () => new Promise((resolve) => setTimeout(resolve, delay())),
  })
  const dataset = letterDataset({ epochs: 1, size: 4, source })
  const { result } = await trainThere(place, { dataset, rollout: { slots } })
  return [await metricsOf(place), await weightsOf(place.backend, result.checkpoint!.sampling!)]
}

/** Advantages that were sent for the trained tokens of a step's data. */
const advantagesWith = async (length: 'sum' | 'mean' | number) => {
  const place = newPlace()
  const { backend, data } = recordingBackend(place.backend)
  const dataset = letterDataset({ epochs: 1, size: 4 })
  await trainThere({ ...place, backend }, { dataset, steps: 1, advantages: { length } })
  return data.flat().map(({ advantages }) => advantages!.filter((each) => each !== 0))
}

const divided = (values: Float32Array, by: number) =>
  Array.from(values, (value) => expect.closeTo(value / by, 6) as number)

/** The loss that a run records. */
const lossOf = async (pipeline: TrainingConfig['pipeline']) => {
  const place = newPlace()
  await trainThere(place, {
    dataset: letterDataset({ epochs: 1 }),
    steps: 1,
    pipeline: pipeline!,
  })
  return (await place.index.run('letters')).record.config['loss']
}

describe('a training', () => {
  test('teaches the policy its tasks', async () => {
    const { reports, result } = await trainThere(newPlace(), learning())
    const before = rewardOf(reports[0]!.evaluations[0]!.values)
    expect(before).toBeLessThan(0.2)
    expect(rewardOf(result.evaluations[0]!.values)).toBeGreaterThan(0.5)
  })

  test('teaches nothing when rewards have nothing to do with replies', async () => {
    let plays = 0
    const source = letterSource({ score: () => Math.sin((plays += 1) * 12.9898) })
    const dataset = letterDataset({ epochs: 24, size: 16, source })
    const { reports, result } = await trainThere(newPlace(), learning({ dataset }))
    const before = rewardOf(reports[0]!.evaluations[0]!.values)
    expect(rewardOf(result.evaluations[0]!.values)).toBeLessThan(before + 0.25)
  })

  test('with one seed gives the same metrics and weights, with another seed others', async () => {
    const first = await withSeed(1)
    expect(await withSeed(1)).toEqual(first)
    const other = await withSeed(2)
    expect(other.weights).not.toBe(first.weights)
    expect(other.metrics).not.toEqual(first.metrics)
  })

  test('does not depend on how many episodes play at once, nor on which comes first', async () => {
    let turn = 0
    const all = await withSlots(64, () => (turn += 7) % 11)
    expect(await withSlots(1, () => 0)).toEqual(all)
    expect(await withSlots(5, () => (turn += 3) % 5)).toEqual(all)
  })

  test('reports a step after its records are there', async () => {
    const index = memoryRunIndex()
    const run = train(letterTraining({ index, dataset: letterDataset({ epochs: 1 }) }))
    for await (const { step } of run) {
      const { steps, metrics } = await index.run('letters')
      expect(steps.at(-1)!.step).toBe(step)
      expect(metrics.at(-1)!.step).toBe(step)
    }
  })

  test('records what training made of each episode: advantage, data, or why not', async () => {
    const place = newPlace()
    const { reports } = await trainThere(place, { dataset: letterDataset({ epochs: 1, size: 4 }) })
    const events = place.index.events('letters')
    const training = events.filter((event): event is TrainingEvent => event.type === 'training')
    expect(training).toHaveLength(6 * 4)
    for (const { step, groups } of reports) {
      const trained = training.filter((event) => event.step === step)
      const advantages = groups.flatMap((group) => group.advantages)
      expect(trained.flatMap(({ advantage }) => advantage ?? [])).toEqual(advantages)
      const untrained = groups.flatMap((group) =>
        group.untrained === undefined ? [] : group.rewards.map(() => group.untrained),
      )
      expect(trained.flatMap((event) => event.untrained ?? [])).toEqual(untrained)
    }
    const [first] = training.filter(({ advantage }) => advantage !== undefined)
    expect(first!.data[0]).toMatchObject({ sequence: 0, trained: expect.any(Number) as number })
    const groups = events.filter((event) => event.type === 'group')
    expect(groups).toHaveLength(6)
  })

  test('statement 78: the advantages of the report are the trained ones', async () => {
    let plays = 0
    const source = letterSource({ score: () => ((plays += 1) === 1 ? 1 : 0) })
    const dataset = letterDataset({ letters: 'a', size: 8, epochs: 1, source })
    const { reports } = await trainThere(newPlace(), { dataset, rollout: { slots: 1 } })
    expect(reports[0]!.groups[0]!.advantages).toEqual([
      0.875,
      ...Array.from({ length: 7 }, () => -0.125),
    ])
  })

  test('spreads an advantage over the tokens as it is told', async () => {
    const sum = await advantagesWith('sum')
    expect((await advantagesWith('mean')).map((each) => [...each])).toEqual(
      sum.map((each) => divided(each, each.length)),
    )
    expect((await advantagesWith(4)).map((each) => [...each])).toEqual(
      sum.map((each) => divided(each, 4)),
    )
  })

  test('sends a mask only to a backend that takes one', async () => {
    for (const mask of [true, false]) {
      const place = newPlace()
      const { backend, data } = recordingBackend({
        ...place.backend,
        describe: async () => ({ ...(await place.backend.describe()), mask }),
      })
      await trainThere({ ...place, backend }, { dataset: letterDataset({ epochs: 1 }), steps: 1 })
      expect(data.flat().every((datum) => (datum.mask !== undefined) === mask)).toBe(true)
      expect(data.length).toBeGreaterThan(0)
    }
  })

  test('pulls towards a reference: the penalty is measured and recorded by token', async () => {
    const place = newPlace()
    const { reports } = await trainThere(place, {
      dataset: letterDataset({ epochs: 2, size: 4 }),
      kl: { reference: { model: 'bigram' }, coefficient: 0.2 },
      measureUpdate: true,
    })
    // The first step samples from the reference itself.
    expect(reports[0]!.values['kl_policy_base']).toBeCloseTo(0, 6)
    expect(reports.at(-1)!.values['kl_policy_base']).toBeGreaterThan(0)
    expect(reports.some(({ values }) => (values['kl_pre_post_v2'] ?? 0) > 0)).toBe(true)
    const trained = place.index
      .events('letters')
      .flatMap((event) =>
        event.type === 'training' && event.advantage !== undefined ? [event] : [],
      )
    const last = trained.at(-1)!.data[0]!
    expect(last.advantages).toHaveLength(last.length)
    expect(last.advantages![0]).toBe(0)
  })

  test('the effective configuration is recorded, defaults and all, with what makes the run what it is', async () => {
    const place = newPlace()
    await trainThere(
      place,
      { dataset: letterDataset({ epochs: 1 }), steps: 1 },
      { versions: { tiltyard: '0.1.0' } },
    )
    const { record } = await place.index.run('letters')
    expect(record).toMatchObject({
      name: 'letters',
      seed: 7,
      fingerprints: { renderer: 'letters:1' },
      versions: { tiltyard: '0.1.0', executor: 'bigram table, 1 thread' },
      config: {
        model: 'bigram',
        loss: { name: 'importance_sampling' },
        pipeline: { maxStaleness: 0, substeps: 1, minibatches: 1 },
        rollout: { slots: 64 },
        renderer: { name: 'letters', fingerprint: 'letters:1' },
        checkpoints: { every: 20 },
      },
    })
  })

  test('off-policy training clips unless it is told otherwise', async () => {
    expect(await lossOf({})).toEqual({ name: 'importance_sampling' })
    expect(await lossOf({ maxStaleness: 1 })).toEqual({ name: 'ppo' })
    expect(await lossOf({ substeps: 2 })).toEqual({ name: 'ppo' })
  })

  test('every option of the optimizer reaches the learner', async () => {
    const place = newPlace()
    const { backend, rates } = recordingBackend(place.backend)
    await trainThere(
      { ...place, backend },
      {
        dataset: letterDataset({ epochs: 2 }),
        keepConstantGroups: true,
        optimizer: { learningRate: 0.4, schedule: { shape: 'linear' } },
      },
    )
    expect(rates).toEqual([0.4, 0.3, 0.2, 0.1].map((rate) => expect.closeTo(rate, 10) as number))
  })

  test('an observer hears what happens between reports, and can not break anything', async () => {
    const heard = new Set<string>()
    const { reports } = await trainThere(
      newPlace(),
      { dataset: letterDataset({ epochs: 1 }), evaluations: [held], evalEvery: 1 },
      {
        observer(event) {
          heard.add(event.type)
          throw new Error('an observer that fails')
        },
      },
    )
    expect(reports).toHaveLength(2)
    expect(heard).toEqual(new Set(['begin', 'rollout', 'group', 'evaluation']))
  })
})

describe('evaluations', () => {
  test('E33, E34: are filed under the step of the weights that play, beside the training’s own steps', async () => {
    const place = newPlace()
    await trainThere(place, {
      dataset: letterDataset({ epochs: 1, size: 2 }),
      evaluations: [{ name: 'held', dataset: letterDataset({ letters: 'a', epochs: 1, size: 1 }) }],
      evalEvery: 1,
    })
    const groups: string[] = []
    for await (const { key } of place.index.groups('letters')) groups.push(runGroupName(key))
    expect([...new Set(groups)].toSorted()).toEqual([
      'eval/held/step-0000',
      'eval/held/step-0001',
      'eval/held/step-0002',
      'train/step-0000',
      'train/step-0001',
    ])
  })

  test('play their tasks with their own sampling, are filed under their name and step, and never train', async () => {
    const place = newPlace()
    const greedy = { ...held, sampling: { temperature: 0 } }
    const { reports } = await trainThere(place, {
      dataset: letterDataset({ epochs: 1, size: 4 }),
      evaluations: [greedy],
      evalEvery: 1,
    })
    expect(reports.flatMap(({ evaluations }) => evaluations.map(({ step }) => step))).toEqual([
      0, 1,
    ])
    let episodes = 0
    for await (const { key, trained } of place.index.episodes('letters', { evaluation: 'held' })) {
      expect(key).toMatchObject({ split: 'eval', evaluation: 'held' })
      expect(trained).toBeUndefined()
      episodes += 1
    }
    expect(episodes).toBe(3 * 6 * 12)
    // Greedy members of a group say the same.
    expect(reports[0]!.evaluations[0]!.values['env/all/by_group/frac_mixed']).toBe(0)
    const training = place.index.events('letters').filter((event) => event.type === 'training')
    expect(training).toHaveLength(6 * 4)
  })

  test('a custom one gets an immutable policy, and its numbers are recorded', async () => {
    const seen: { step: number; version: number }[] = []
    const custom = {
      name: 'counted',
      every: 2,
      async evaluate({ step, sampler }: EvaluationContext) {
        seen.push({ step, version: sampler.version.step })
        return { answer: 42 + step }
      },
    }
    const place = newPlace()
    const dataset = letterDataset({ epochs: 2, groupsPerBatch: 3 })
    const { reports, result } = await trainThere(place, {
      dataset,
      evaluations: [custom],
      keepConstantGroups: true,
    })
    expect(
      reports.map(({ evaluations }) => evaluations.map(({ values }) => values['answer'])),
    ).toEqual([[42], [], [44], []])
    expect(result.evaluations).toMatchObject([{ name: 'counted', step: 4, values: { answer: 46 } }])
    expect(seen).toEqual([0, 2, 4].map((step) => ({ step, version: step })))
    const { metrics } = await place.index.run('letters')
    expect(metrics.filter(({ evaluation }) => evaluation === 'counted')).toHaveLength(3)
  })

  test('a slow one does not skip the next, and the step it belongs to waits for it', async () => {
    const custom = {
      name: 'slow',
      every: 1,
      evaluate: () =>
        new Promise<Record<string, number>>((resolve) =>
          setTimeout(() => resolve({ done: 1 }), 15),
        ),
    }
    const { reports } = await trainThere(newPlace(), {
      dataset: letterDataset({ epochs: 2, size: 2 }),
      pipeline: { maxStaleness: 2 },
      evaluations: [custom],
    })
    expect(reports.map(({ step, evaluations }) => [step, evaluations[0]?.step])).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
      [3, 3],
    ])
  })

  test('count what failed in them and was played again, as training does', async () => {
    let opened = 0
    const source = letterSource({
      onOpen() {
        opened += 1
        if (opened % 6 === 1) throw new TypeError('no connection')
      },
    })
    const config = {
      dataset: letterDataset({ letters: 'ab', size: 5, groupsPerBatch: 2, epochs: 1, source }),
      evaluations: [
        { name: 'held', dataset: letterDataset({ letters: 'ab', size: 5, epochs: 1, source }) },
      ],
      evalEvery: 1,
      rollout: { slots: 1 },
    }
    const { reports } = await trainThere(newPlace(), config)
    const failed = {
      'rollout_errors/TypeError': 2,
      'rollout_errors/total': 2,
      'rollout_errors/retries': 2,
      'groups/dropped': 0,
    }
    expect(reports[0]!.evaluations[0]!.values).toMatchObject(failed)
    expect(reports[0]!.values).toMatchObject(failed)
  })

  test('of a checkpoint alone are a run of their own, and tell what the training told', async () => {
    const place = newPlace()
    const config = { dataset: letterDataset({ epochs: 1 }), evaluations: [held] }
    const { result } = await trainThere(place, config)
    const reports = await evaluate(letterTraining({ ...place, ...config, run: 'again' }), {
      of: { checkpoint: result.checkpoint!.sampling! },
      step: 2,
    })
    expect(reports.map(({ name, step, values }) => ({ name, step, values }))).toEqual(
      result.evaluations.map(({ name, step, values }) => ({ name, step, values })),
    )
    expect((await place.index.run('again')).summary.status).toBe('completed')
  })

  test('evalEvery 0 means none at all', async () => {
    const { reports, result } = await trainThere(newPlace(), {
      backend: letterBackend(),
      dataset: letterDataset({ epochs: 1 }),
      evaluations: [held],
      evalEvery: 0,
    })
    expect(reports.flatMap(({ evaluations }) => evaluations)).toEqual([])
    expect(result.evaluations).toEqual([])
  })
})
