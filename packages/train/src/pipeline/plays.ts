import { StateError, systemClock } from '@tiltyard/core'

import { refKey, type GroupRef } from './composer.ts'
import type { ScheduleInput } from './schedule.ts'
import type { PipelineOptions, PipelineWork, Played } from './work.ts'

/** What plays get to end after they were cancelled: most of the 2 s that an abort has. */
const CANCEL_MS = 1_500

/** The reading and playing that goes on beside the learner. */
export interface Plays<Group> {
  read(batch: number): void
  start(ref: GroupRef): void
  /** A finished play; handed out once. */
  take(ref: GroupRef): Played<Group>
  /** Cancels plays that nobody waits for. */
  abandon(refs: readonly GroupRef[]): void
  /** Cancels all and waits, a while, until they have ended. */
  close(options: PipelineOptions): Promise<void>
}

interface Batch<Plan> {
  readonly plans: Promise<readonly Plan[] | undefined>
  /** Groups not handed out yet. */
  left: number
}

interface Callbacks {
  readonly tell: (input: ScheduleInput) => void
  readonly fail: (error: unknown) => void
}

export function createPlays<Plan, Group, Result, Report>(
  work: PipelineWork<Plan, Group, Result, Report>,
  { tell, fail }: Callbacks,
): Plays<Group> {
  const cancelled = new AbortController()
  const batches = new Map<number, Batch<Plan>>()
  const underWay = new Map<
    string,
    { readonly abort: AbortController; readonly done: Promise<void> }
  >()
  const played = new Map<string, Played<Group>>()

  const batch = async (number: number) => {
    const known = batches.get(number)
    if (known !== undefined) return await known.plans
    const reading = { plans: work.read(number, cancelled.signal), left: 0 }
    batches.set(number, reading)
    const plans = await reading.plans
    reading.left = plans?.length ?? 0
    return plans
  }

  /** A batch is forgotten when its groups were handed out; a group that is played again reads it again. */
  const forget = (number: number) => {
    const known = batches.get(number)
    if (known === undefined) return
    known.left -= 1
    if (known.left === 0) batches.delete(number)
  }

  const play = async (ref: GroupRef, signal: AbortSignal) => {
    try {
      const plan = (await batch(ref.batch))?.[ref.group]
      if (plan === undefined) {
        throw new StateError(
          `the dataset gave no group ${ref.group} in batch ${ref.batch} this time; batch() must give the same again`,
        )
      }
      const result = await work.play(plan, ref, signal)
      if (signal.aborted) return
      played.set(refKey(ref), result)
      tell({ type: 'played', ref, version: result.version, usable: result.usable })
    } catch (error) {
      if (!signal.aborted) fail(error)
    }
  }

  return {
    read(number) {
      batch(number).then(
        (plans) => tell({ type: 'batch', batch: number, groups: plans?.length }),
        (error: unknown) => {
          if (!cancelled.signal.aborted) fail(error)
        },
      )
    },
    start(ref) {
      const key = refKey(ref)
      const abort = new AbortController()
      const done = play(ref, AbortSignal.any([cancelled.signal, abort.signal])).finally(() => {
        underWay.delete(key)
      })
      underWay.set(key, { abort, done })
    },
    take(ref) {
      const found = played.get(refKey(ref))
      if (found === undefined)
        throw new StateError(`group ${ref.group} of batch ${ref.batch} was not played`)
      played.delete(refKey(ref))
      forget(ref.batch)
      return found
    },
    abandon(refs) {
      for (const ref of refs) underWay.get(refKey(ref))?.abort.abort()
    },
    async close({ clock = systemClock, cancelMs = CANCEL_MS }) {
      cancelled.abort()
      const tasks = [...underWay.values()].map(({ done }) => done)
      if (tasks.length === 0) return
      const over = new AbortController()
      await Promise.race([
        Promise.allSettled(tasks),
        clock.sleep(cancelMs, over.signal).catch(() => {}),
      ])
      over.abort()
    },
  }
}
