import type { Contract } from './contract.ts'
import type { TaskRef, TaskSource } from './episode.ts'
import type { JsonValue } from './json.ts'
import type { GroupRewardRule, RewardRule } from './score.ts'

/** A task to be played by a group of episodes. */
export interface GroupPlan {
  readonly source: TaskSource
  readonly task: TaskRef
  /** Episodes of the group. */
  readonly size: number
  readonly reward: RewardRule
  readonly groupReward?: GroupRewardRule
  /** Of the task's instance: equal for all members. */
  readonly seed: number
}

/** What is played at each step, in an order that a seed decides. */
export interface Dataset extends Contract<'dataset/1'> {
  readonly name: string
  /** Hash of the tasks and of how they are ordered and scored. */
  readonly fingerprint: string
  /** Groups of step n (0-based) for a run's seed. The same again for the same arguments. Undefined: the dataset is at its end. */
  batch(step: number, seed: number): Promise<readonly GroupPlan[] | undefined>
  /** Batches in all; absent: endless. */
  readonly batches?: number
  /** Facts about the position at a step, for records (epoch, index). */
  position(step: number): JsonValue
}
