import { ConfigError, type Dataset, type GroupPlan, NotFoundError } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { bundleDataset, type BundleDatasetOptions, namedStep, ranking } from '../src/index.ts'
import { makeBundle, writeBundle } from './support/make-bundle.ts'
import { quiet } from './support/play.ts'

const bundle = await makeBundle({
  tasks: Array.from({ length: 10 }, (_, index) => ({
    id: `t${index}`,
    turns: [{ prompt: 'x' }],
    tags: [index < 6 ? 'train' : 'test'],
  })),
  manifest: {
    steps: [
      { name: 'db', use: 'always', weight: 2 },
      { name: 'told', use: 'always' },
    ],
    evals: {
      train: { where: { tags: ['train'] } },
      test: { where: { tags: ['test'] } },
    },
  },
})

const base = {
  train: 'train',
  test: 'test',
  groupSize: 4,
  groupsPerBatch: 4,
  reward: 'db',
} as const

const datasets = (options: Partial<BundleDatasetOptions> = {}) =>
  bundleDataset(bundle, { ...base, ...options })

const ids = (plans: readonly GroupPlan[] | undefined) => plans?.map(({ task }) => task.id)

async function idsOf(dataset: Dataset, steps: number, seed: number) {
  const batches = []
  for (let step = 0; step < steps; step += 1) batches.push(ids(await dataset.batch(step, seed)))
  return batches
}

describe('the train dataset', () => {
  test('plays every task once in an epoch, in an order that the seed and the epoch decide', async () => {
    const { train } = await datasets()
    const all = (await idsOf(train, 3, 7)).flat()
    const [first, second] = [all.slice(0, 6), all.slice(6)]
    for (const epoch of [first, second])
      expect(new Set(epoch)).toEqual(new Set(['t0', 't1', 't2', 't3', 't4', 't5']))
    expect(second).not.toEqual(first)
    expect((await idsOf(train, 3, 8)).flat()).not.toEqual(all)
  })

  test('gives the same batch again for the same step and seed, whatever was asked before', async () => {
    const { train } = await datasets()
    const inOrder = await Promise.all([0, 1, 2, 3].map((step) => train.batch(step, 7)))
    const fresh = (await datasets()).train
    for (const step of [3, 0, 2, 1]) {
      const batch = await fresh.batch(step, 7)
      expect(ids(batch)).toEqual(ids(inOrder[step]))
      expect(batch?.map(({ seed }) => seed)).toEqual(inOrder[step]?.map(({ seed }) => seed))
    }
  })

  test('a task’s instance has another seed in every epoch and run', async () => {
    const { train } = await datasets({ order: 'listed', groupsPerBatch: 6 })
    const seeds = [await train.batch(0, 1), await train.batch(1, 1), await train.batch(0, 2)].map(
      (plans) => plans?.[0]?.seed,
    )
    expect(new Set(seeds).size).toBe(3)
  })

  test('ends after so many epochs, its last batch with what is left', async () => {
    const { train } = await datasets({ epochs: 1 })
    expect(train.batches).toBe(2)
    expect((await idsOf(train, 3, 7)).map((batch) => batch?.length)).toEqual([4, 2, undefined])
    expect((await datasets()).train.batches).toBeUndefined()
  })

  test('listed order is the eval’s', async () => {
    const { train } = await datasets({ order: 'listed' })
    expect(await idsOf(train, 2, 7)).toEqual([
      ['t0', 't1', 't2', 't3'],
      ['t4', 't5', 't0', 't1'],
    ])
    expect([train.position(0), train.position(1)]).toEqual([
      { epoch: 0, index: 0 },
      { epoch: 0, index: 4 },
    ])
    expect(train.position(2)).toEqual({ epoch: 1, index: 2 })
  })

  test('its plans say how many play, and what rewards them', async () => {
    const groupReward = ranking(namedStep('told'))
    const { train, source } = await datasets({ groupReward })
    const [plan] = (await train.batch(0, 1)) ?? []
    expect(plan).toMatchObject({ size: 4, source, groupReward })
    expect(plan?.reward.name).toBe('db')
  })

  test('its fingerprint changes with tasks, group size, reward and order', async () => {
    const others: Partial<BundleDatasetOptions>[] = [
      {},
      { train: 'all' },
      { groupSize: 8 },
      { groupsPerBatch: 2 },
      { reward: 'told' },
      { order: 'listed' },
      { epochs: 2 },
    ]
    const fingerprints = await Promise.all(
      others.map(async (other) => (await datasets(other)).train.fingerprint),
    )
    expect(new Set(fingerprints).size).toBe(others.length)
    expect((await datasets()).train.fingerprint).toBe(fingerprints[0])
  })
})

describe('the test dataset', () => {
  test('is one batch of all evaluated tasks, in order, each played once', async () => {
    const { test: held } = await datasets()
    expect(held.batches).toBe(1)
    expect(await idsOf(held, 2, 7)).toEqual([['t6', 't7', 't8', 't9'], undefined])
    expect((await held.batch(0, 7))?.map(({ size }) => size)).toEqual([1, 1, 1, 1])
  })

  test('can be fewer tasks, spread over the eval, and more episodes of each', async () => {
    const { test: held } = await datasets({ test: 'all', testTasks: 3, testGroupSize: 2 })
    expect((await idsOf(held, 1, 7))[0]).toEqual(['t0', 't3', 't6'])
    expect((await held.batch(0, 7))?.[0]?.size).toBe(2)
  })

  test('is absent when nothing is evaluated', async () => {
    const { train, test: held } = await bundleDataset(bundle, {
      train: 'all',
      groupSize: 2,
      groupsPerBatch: 1,
      reward: 'db',
    })
    expect(held).toBeUndefined()
    expect(train.name).toBe('trial/all')
  })
})

describe('what is wrong is said before anything is played', () => {
  test('E26: several steps, and none is named: an error that lists them', async () => {
    const { reward: _, ...rest } = base
    await expect(bundleDataset(bundle, rest)).rejects.toThrow(/several scoring steps \(db, told\)/)
  })

  test('a reward of a step that does not exist', async () => {
    await expect(datasets({ reward: 'dB2' })).rejects.toThrow(
      /unknown scoring step "dB2".*There is db, told/,
    )
  })

  test('a reward of a step that some tasks do not record', async () => {
    const some = await makeBundle({
      manifest: {
        steps: [
          { name: 'a', use: 'always' },
          { name: 'b', use: 'always' },
        ],
      },
      tasks: [
        { id: 'both', turns: [{ prompt: 'x' }] },
        { id: 'less', turns: [{ prompt: 'x' }], steps: ['a'] },
      ],
    })
    const options = { train: 'all', groupSize: 2, groupsPerBatch: 1 }
    await expect(bundleDataset(some, { ...options, reward: 'b' })).rejects.toThrow(
      'unknown scoring step "b"',
    )
    await expect(bundleDataset(some, { ...options, reward: 'a' })).resolves.toBeDefined()
  })

  test('a split that does not exist, with those that do', async () => {
    await expect(datasets({ train: 'trains' })).rejects.toThrow(NotFoundError)
    await expect(datasets({ train: 'trains' })).rejects.toThrow(
      'bundle "trial" has no eval "trains"; did you mean "train"? There is all, train, test',
    )
  })

  test('an unknown option, with the nearest one', async () => {
    await expect(datasets({ groupSise: 3 } as never)).rejects.toThrow(
      'unknown key "groupSise"; did you mean "groupSize"?',
    )
  })

  test('a folder’s bundle that is broken', async () => {
    const folder = await writeBundle({ manifest: { reward: 'db' } })
    await expect(bundleDataset(folder, base)).rejects.toThrow(ConfigError)
  })
})

test('rules: the steps’ own weights, and any RewardRule', async () => {
  const outcome = {
    end: { kind: 'completed' } as const,
    scores: { db: { value: 1 }, told: { value: 1 } },
    metrics: {},
  }
  const rewardOf = async (reward: NonNullable<BundleDatasetOptions['reward']>) =>
    (await (await datasets({ reward })).train.batch(0, 1))?.[0]?.reward.reward(outcome)
  expect(await rewardOf('weighted')).toEqual({ reward: 3 })
  expect(await rewardOf({ product: ['db', 'told'] })).toEqual({ reward: 1 })
  expect(await rewardOf(namedStep('told'))).toEqual({ reward: 1 })
})

test('from a folder: it loads the bundle, and its plans open Envs', async () => {
  const folder = await writeBundle({})
  const { train } = await bundleDataset(folder, { train: 'all', groupSize: 2, groupsPerBatch: 1 })
  const [plan] = (await train.batch(0, 1)) ?? []
  const env = await plan!.source.open(plan!.task, { seed: plan!.seed, signal: quiet() })
  expect(env.specVersion).toBe('env/1')
  await env.close()
})
