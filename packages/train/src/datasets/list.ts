import { ConfigError, deriveSeed, randomStream, type Dataset, type GroupPlan } from '@tiltyard/core'

import { checkCounts } from './counts.ts'

/** What is to be played; the seed of its instance comes with the batch. */
export type PlannedTask = Omit<GroupPlan, 'seed'>

export interface ListDatasetOptions {
  readonly name: string
  readonly tasks: readonly PlannedTask[]
  /** Groups in a batch; the last of a pass may have fewer. */
  readonly groupsPerBatch: number
  /** Passes over the tasks. Default: endless. */
  readonly epochs?: number
  /** Each pass in an order of its own, decided by the run's seed. Default true. */
  readonly shuffle?: boolean
}

/**
 * Tasks as a dataset: every pass takes each task once. The same step and seed give the same groups, with the same instance seeds.
 * @throws ConfigError when there are no tasks, or a number is no positive integer.
 */
export function listDataset(options: ListDatasetOptions): Dataset {
  const { name, tasks, groupsPerBatch, epochs, shuffle = true } = options
  if (tasks.length === 0)
    throw new ConfigError(`dataset ${name}`, [{ at: 'tasks', message: 'there are no tasks' }])
  checkCounts(name, { groupsPerBatch, epochs })
  const perEpoch = Math.ceil(tasks.length / groupsPerBatch)
  const placeOf = (step: number) => ({
    epoch: Math.floor(step / perEpoch),
    index: (step % perEpoch) * groupsPerBatch,
  })
  return {
    specVersion: 'dataset/1',
    name,
    fingerprint: fingerprintOf(options),
    ...(epochs === undefined ? {} : { batches: perEpoch * epochs }),
    async batch(step, seed) {
      const { epoch, index } = placeOf(step)
      if (epochs !== undefined && epoch >= epochs) return undefined
      const indices = tasks.map((_, task) => task)
      const order = shuffle ? randomStream(seed, name, 'epoch', epoch).shuffle(indices) : indices
      return order
        .slice(index, index + groupsPerBatch)
        .map((task) => ({ ...tasks[task]!, seed: deriveSeed(seed, name, 'task', epoch, task) }))
    },
    position: placeOf,
  }
}

function fingerprintOf({ tasks, groupsPerBatch, shuffle = true }: ListDatasetOptions): string {
  const hash = tasks.reduce(
    (before, { source, task, size, reward, groupReward }) =>
      deriveSeed(
        before,
        source.fingerprint,
        task.id,
        task.fingerprint,
        size,
        reward.name,
        groupReward?.name ?? '',
      ),
    deriveSeed(0, groupsPerBatch, String(shuffle)),
  )
  return `list:${tasks.length}:${hash.toString(16).padStart(8, '0')}`
}
