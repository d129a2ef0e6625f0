import type { Clock } from '@tiltyard/core'

import type { GroupRef } from './composer.ts'
import type { Schedule, SchedulePosition } from './schedule.ts'

/** A group that was played, as the pipeline needs to know it. */
export interface Played<Group> {
  readonly group: Group
  /** Steps that the weights had seen when its play began. */
  readonly version: number
  readonly usable: boolean
}

/** Learner calls that were made; `settled` has their results. Wrapped, so that awaiting the making is not awaiting the results. */
interface Issued<Result> {
  /** Optimizer steps among them. */
  readonly updates: number
  readonly settled: Promise<Result>
}

export interface TrainPart<Group> {
  readonly step: number
  readonly groups: readonly Played<Group>[]
  readonly updates: number
}

export interface FinishedStep<Group, Result> {
  readonly step: number
  readonly groups: readonly Played<Group>[]
  readonly results: readonly Result[]
  readonly updates: number
  /** To go on after this step. */
  readonly position: SchedulePosition
}

/** What the pipeline moves: everything that takes time comes in as a function. */
export interface PipelineWork<Plan, Group, Result, Report> {
  readonly schedule: Schedule
  read(batch: number, signal: AbortSignal): Promise<readonly Plan[] | undefined>
  play(plan: Plan, ref: GroupRef, signal: AbortSignal): Promise<Played<Group>>
  /** Makes the learner's calls, in the order of the parts. */
  train(part: TrainPart<Group>): Promise<Issued<Result>>
  /** Makes the step's weights those that sample; called when all calls of the step were made, before any of the next one. */
  publish(step: number, updates: number): Promise<void>
  /** Records the step. Steps finish in order; the one after may be trained meanwhile, but not published. */
  finish(step: FinishedStep<Group, Result>): Promise<Report>
  /** A played group that trains nothing: too old, or left over at the end. */
  discard(played: Played<Group>, ref: GroupRef, why: 'stale' | 'unused', step: number): void
}

export interface PipelineOptions {
  /** Ends at once. */
  readonly signal: AbortSignal
  /** Ends at the next whole step. */
  readonly stop?: AbortSignal | undefined
  readonly clock?: Clock
  /** Milliseconds that plays get to end after they were cancelled. Default 1,500. */
  readonly cancelMs?: number
}

export interface PipelineEnd {
  readonly reason: 'completed' | 'stopped'
  readonly steps: number
  readonly position: SchedulePosition
}

/** What a step's parts came to. */
export type TrainedStep<Group, Result> = Pick<
  FinishedStep<Group, Result>,
  'groups' | 'results' | 'updates'
>
