import { arrivalComposer } from './arrival.ts'
import type { Composer, GroupRef, Shape } from './composer.ts'
import { plannedComposer } from './planned.ts'

export interface ScheduleOptions extends Shape {
  /** How many steps a sample may lag behind the weights that it trains. */
  readonly maxStaleness: number
  /** Set: a step is so many usable groups, whichever arrive first. Absent: step n is batch n. */
  readonly groupsPerStep?: number | undefined
  readonly stale: 'replay' | 'drop'
  /** Steps of the run in all. Absent: until the dataset's end. */
  readonly steps?: number | undefined
  /** Steps that were done before. */
  readonly from: number
  /** With `groupsPerStep`, going on: where the dataset stands. */
  readonly position?: SchedulePosition | undefined
}

/** Where a run stands in its dataset between two steps. */
export interface SchedulePosition {
  readonly nextBatch: number
  /** Groups of earlier batches that were not trained yet. */
  readonly unfinished: readonly GroupRef[]
}

export type ScheduleInput =
  | { readonly type: 'begin' }
  /** A batch was read. `groups` absent: the dataset has none at this number or later. */
  | { readonly type: 'batch'; readonly batch: number; readonly groups?: number | undefined }
  /** A group was played. `version`: steps that its weights had seen. `usable`: there is something to learn from it. */
  | {
      readonly type: 'played'
      readonly ref: GroupRef
      readonly version: number
      readonly usable: boolean
    }
  /** The step's weights are what sampling uses from now on. */
  | { readonly type: 'published' }
  /** Come to an end soon, keeping the weights those of a whole step. */
  | { readonly type: 'stop' }

export type ScheduleCommand =
  | { readonly type: 'read'; readonly batch: number }
  /** With the newest weights there are when it really starts. */
  | { readonly type: 'play'; readonly ref: GroupRef }
  /** Too old for `step`; it is played again or given up. */
  | {
      readonly type: 'stale'
      readonly ref: GroupRef
      readonly step: number
      readonly fate: 'replay' | 'drop'
    }
  /**
   * Accumulate these groups' gradients; then, `updates` times, step the optimizer: the data is split into so many parts. With
   * `updates` 0 the gradients wait for a later command. Groups that are not usable are listed too: they belong to the step.
   */
  | {
      readonly type: 'train'
      readonly step: number
      readonly groups: readonly GroupRef[]
      readonly updates: number
    }
  /** All of the step was given: make its weights those that sample. */
  | { readonly type: 'publish'; readonly step: number }
  /** Nobody waits for these plays any more. */
  | { readonly type: 'abandon'; readonly refs: readonly GroupRef[] }
  | {
      readonly type: 'end'
      readonly reason: 'completed' | 'stopped'
      /** Steps done in all. */
      readonly steps: number
      /** Groups that were played and belong to no step. */
      readonly unused: readonly GroupRef[]
    }

export interface Schedule {
  /** Takes note of what happened and says what to do now. Pure: no clock, no I/O; the same inputs give the same commands. */
  next(input: ScheduleInput): readonly ScheduleCommand[]
  /** Steps done: those that the newest weights have seen. */
  readonly step: number
  position(): SchedulePosition
}

/**
 * Decides what is read, played, trained and published, and when. The three kinds of training are one machine:
 *
 * - synchronous: `maxStaleness` 0. Batch n is played with the weights of step n, then trained.
 * - asynchronous: `maxStaleness` K. Batch n may begin as soon as n − K steps are done, so sampling runs at most K steps ahead:
 *   it is paced, and nothing that was sampled is thrown away.
 * - streaming: `minibatches` above 1. A part of the step is sent to the learner as soon as its groups are there.
 *
 * Samples never train weights that are more than K steps newer than those that sampled them. With `groupsPerStep` a straggler
 * can come too late for that; it is then played again or dropped, and counted.
 */
export function createSchedule(options: ScheduleOptions): Schedule {
  const composer: Composer =
    options.groupsPerStep === undefined
      ? plannedComposer(options)
      : arrivalComposer({ ...options, groupsPerStep: options.groupsPerStep })
  let step = options.from
  let phase: 'collecting' | 'publishing' | 'over' = 'collecting'
  let stopping = false
  let updates = 0

  const end = (reason: 'completed' | 'stopped'): ScheduleCommand[] => {
    phase = 'over'
    const refs = composer.abandon()
    const ending = { type: 'end', reason, steps: step, unused: composer.unused() } as const
    return refs.length === 0 ? [ending] : [{ type: 'abandon', refs }, ending]
  }

  const take = (input: ScheduleInput): void => {
    if (input.type === 'batch') composer.received(input.batch, input.groups)
    if (input.type === 'played') composer.played(input.ref, input.version, input.usable)
    if (input.type === 'stop') stopping = true
    if (input.type === 'published') {
      step += 1
      updates = 0
      phase = 'collecting'
    }
  }

  /** A stop waits for a step whose weights have already changed, since only whole steps can be saved. */
  const halted = (): ScheduleCommand[] | undefined => {
    if (!stopping || phase === 'publishing') return undefined
    if (updates === 0) return end('stopped')
    const refs = composer.confine(step)
    return refs.length === 0 ? undefined : [{ type: 'abandon', refs }, ...collect()]
  }

  const collect = (): ScheduleCommand[] => {
    const commands: ScheduleCommand[] = []
    for (const { ref, fate } of composer.takeStale(step))
      commands.push({ type: 'stale', ref, step, fate })
    for (
      let part = phase === 'collecting' ? composer.takePart(step) : undefined;
      part !== undefined;
      part = phase === 'collecting' ? composer.takePart(step) : undefined
    ) {
      updates += part.updates
      commands.push({ type: 'train', step, groups: part.groups, updates: part.updates })
      if (!part.last) continue
      phase = 'publishing'
      commands.push({ type: 'publish', step })
    }
    if (phase === 'collecting' && composer.over(step))
      return [...commands, ...end(stopping ? 'stopped' : 'completed')]
    for (const ref of composer.takePlays(step)) commands.push({ type: 'play', ref })
    const batch = composer.takeRead(step)
    if (batch !== undefined) commands.push({ type: 'read', batch })
    return commands
  }

  return {
    next(input) {
      if (phase === 'over') return []
      take(input)
      return halted() ?? collect()
    },
    get step() {
      return step
    },
    position: () => composer.position(step),
  }
}
