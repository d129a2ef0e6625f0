import {
  checkOptions,
  type Dataset,
  deriveSeed,
  type GroupPlan,
  type GroupRewardRule,
  randomStream,
  type RewardRule,
  type TaskRef,
  type TaskSource,
} from '@tiltyard/core'
import { z } from 'zod'

import type { Bundle } from './bundle.ts'
import { loadBundle } from './load/load-bundle.ts'
import type { LoadOptions } from './load/loading.ts'
import { type RewardSpec, rewardSpecSchema } from './load/manifest.ts'
import type { PlayOptions } from './play/env.ts'
import { hashOf } from './play/facts.ts'
import { rewardRule } from './reward/spec.ts'
import { bundleSource, taskIds, taskRef } from './source.ts'

export interface BundleDatasetOptions extends PlayOptions {
  /** What is trained on: `all`, or the name of an eval. */
  readonly train: string
  /** What is evaluated: `all`, or the name of an eval. Absent: `test` is undefined in the result. */
  readonly test?: string
  /** Episodes of one task whose rewards are compared. */
  readonly groupSize: number
  /** Groups of one training step. */
  readonly groupsPerBatch: number
  /** The step that is the reward, or a rule that joins several. Default: the manifest's, else the only step. */
  readonly reward?: RewardSpec | RewardRule
  /** Rewards that compare the members of a group, in training. */
  readonly groupReward?: GroupRewardRule
  /** How often each training task is played. Default: again and again. */
  readonly epochs?: number
  /** Order of the training tasks: drawn anew for each epoch from the run's seed, or as listed. Default `shuffled`. */
  readonly order?: 'shuffled' | 'listed'
  /** Episodes of each evaluated task. Default 1. */
  readonly testGroupSize?: number
  /** Evaluate at most so many tasks, evenly spread over the eval. Default: all. */
  readonly testTasks?: number
  /** Of a folder. */
  readonly load?: LoadOptions
}

export interface BundleDatasets<Test extends Dataset | undefined = Dataset | undefined> {
  readonly bundle: Bundle
  /** Both datasets play from it; whoever runs the training closes it. */
  readonly source: TaskSource
  readonly train: Dataset
  /** One batch: all evaluated tasks, the same in every evaluation. */
  readonly test: Test
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null
const rule = z.custom<RewardRule>(
  (value) => isObject(value) && 'reward' in value && 'check' in value,
)
const optionsSchema = z.strictObject({
  train: z.string(),
  test: z.string().optional(),
  groupSize: z.int().min(1),
  groupsPerBatch: z.int().min(1),
  reward: z
    .union([rule, rewardSpecSchema], { error: 'expected a step, a rule as data, or a RewardRule' })
    .optional(),
  groupReward: z.custom<GroupRewardRule>(isObject, 'expected a GroupRewardRule').optional(),
  epochs: z.int().min(1).optional(),
  order: z.enum(['shuffled', 'listed']).optional(),
  testGroupSize: z.int().min(1).optional(),
  testTasks: z.int().min(1).optional(),
  load: z.custom<LoadOptions>(isObject).optional(),
  sandboxes: z.custom<NonNullable<PlayOptions['sandboxes']>>(isObject).optional(),
  users: z.custom<NonNullable<PlayOptions['users']>>(isObject).optional(),
  chats: z.custom<NonNullable<PlayOptions['chats']>>(isObject).optional(),
  log: z.custom<NonNullable<PlayOptions['log']>>(isObject).optional(),
  onToolError: z
    .custom<NonNullable<PlayOptions['onToolError']>>((value) => typeof value === 'function')
    .optional(),
})

/**
 * What to train on and what to evaluate, from a bundle or its folder.
 * @throws ConfigError for wrong options, a broken bundle, and a reward that can't be decided, with the steps that there are.
 */
export function bundleDataset(
  bundle: Bundle | string,
  options: BundleDatasetOptions & { readonly test: string },
): Promise<BundleDatasets<Dataset>>
export function bundleDataset(
  bundle: Bundle | string,
  options: BundleDatasetOptions,
): Promise<BundleDatasets>
export async function bundleDataset(
  from: Bundle | string,
  options: BundleDatasetOptions,
): Promise<BundleDatasets> {
  checkOptions('bundleDataset', optionsSchema, options)
  const { sandboxes, users, chats, log, onToolError } = options
  const bundle = typeof from === 'string' ? await loadBundle(from, options.load) : from
  const source = bundleSource(bundle, withoutAbsent({ sandboxes, users, chats, log, onToolError }))
  const reward = decideReward(bundle, options.reward)
  const train = splitTasks(bundle, options.train)
  const test = options.test === undefined ? [] : splitTasks(bundle, options.test)
  checkReward(bundle, reward, options.groupReward, [...train, ...test])
  return {
    bundle,
    source,
    train: trainDataset({ bundle, source, tasks: train, reward }, options),
    test:
      options.test === undefined
        ? undefined
        : testDataset({ bundle, source, tasks: test, reward }, options, options.test),
  }
}

interface Parts {
  readonly bundle: Bundle
  readonly source: TaskSource
  readonly tasks: readonly TaskRef[]
  readonly reward: RewardRule
}

function trainDataset(
  { bundle, source, tasks, reward }: Parts,
  {
    train,
    groupSize,
    groupsPerBatch,
    groupReward,
    epochs,
    order = 'shuffled',
  }: BundleDatasetOptions,
): Dataset {
  const total = epochs === undefined ? Infinity : epochs * tasks.length
  const orderOf = epochOrder(tasks, order)
  return {
    specVersion: 'dataset/1',
    name: `${bundle.name}/${train}`,
    fingerprint: hashOf(
      bundle.fingerprint,
      ...tasks.map(({ id }) => id),
      JSON.stringify([groupSize, groupsPerBatch, epochs, order, reward.name, groupReward?.name]),
    ),
    ...(epochs === undefined ? {} : { batches: Math.ceil(total / groupsPerBatch) }),
    position: (step) => place(step * groupsPerBatch, tasks.length),
    batch: (step, seed) => {
      const first = step * groupsPerBatch
      const count = Math.min(groupsPerBatch, total - first)
      if (count <= 0) return Promise.resolve(undefined)
      const plans = Array.from({ length: count }, (_, offset): GroupPlan => {
        const { epoch, index } = place(first + offset, tasks.length)
        const task = orderOf(seed, epoch)[index]!
        return {
          source,
          task,
          size: groupSize,
          reward,
          ...(groupReward === undefined ? {} : { groupReward }),
          seed: deriveSeed(seed, 'instance', epoch, task.id),
        }
      })
      return Promise.resolve(plans)
    },
  }
}

function testDataset(
  { bundle, source, tasks, reward }: Parts,
  { testGroupSize = 1, testTasks = Infinity }: BundleDatasetOptions,
  split: string,
): Dataset {
  const count = Math.min(testTasks, tasks.length)
  const chosen = Array.from(
    { length: count },
    (_, index) => tasks[Math.floor((index * tasks.length) / count)]!,
  )
  return {
    specVersion: 'dataset/1',
    name: `${bundle.name}/${split}`,
    fingerprint: hashOf(
      bundle.fingerprint,
      ...chosen.map(({ id }) => id),
      JSON.stringify([testGroupSize, reward.name]),
    ),
    batches: 1,
    position: () => ({ epoch: 0, index: 0 }),
    batch: (step, seed) =>
      Promise.resolve(
        step > 0
          ? undefined
          : chosen.map((task) => ({
              source,
              task,
              size: testGroupSize,
              reward,
              seed: deriveSeed(seed, 'instance', 'test', task.id),
            })),
      ),
  }
}

function place(
  position: number,
  length: number,
): { readonly epoch: number; readonly index: number } {
  return { epoch: Math.floor(position / length), index: position % length }
}

/** The tasks' order in an epoch of a run; the last one is kept, since a batch asks for the same again and again. */
function epochOrder(
  tasks: readonly TaskRef[],
  order: 'shuffled' | 'listed',
): (seed: number, epoch: number) => readonly TaskRef[] {
  if (order === 'listed') return () => tasks
  let last: { readonly key: string; readonly tasks: readonly TaskRef[] } | undefined
  return (seed, epoch) => {
    const key = `${seed} ${epoch}`
    if (last?.key !== key) last = { key, tasks: randomStream(seed, 'order', epoch).shuffle(tasks) }
    return last.tasks
  }
}

function splitTasks(bundle: Bundle, split: string): readonly TaskRef[] {
  return taskIds(bundle, split).map((id) => taskRef(bundle, id))
}

function decideReward(bundle: Bundle, reward: BundleDatasetOptions['reward']): RewardRule {
  if (reward === undefined) return bundle.reward ?? rewardRule(undefined, bundle.steps)
  return typeof reward === 'object' && 'check' in reward ? reward : rewardRule(reward, bundle.steps)
}

/** @throws ConfigError of the first rule that a task's steps don't fit. */
function checkReward(
  bundle: Bundle,
  reward: RewardRule,
  groupReward: GroupRewardRule | undefined,
  tasks: readonly TaskRef[],
): void {
  const all = bundle.steps.map(({ name }) => name)
  const sets = new Map(
    tasks.map(({ id }) => {
      const steps = bundle.tasks.get(id).steps ?? all
      return [steps.join('\n'), steps] as const
    }),
  )
  for (const steps of sets.values()) {
    reward.check(steps)
    groupReward?.check(steps)
  }
}

function withoutAbsent(options: {
  readonly [Key in keyof PlayOptions]: PlayOptions[Key] | undefined
}): PlayOptions {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}
