import { randomStream, type Clock } from '@tiltyard/core'

import type { GroupRef } from '../../src/pipeline/composer.ts'
import { runPipeline } from '../../src/pipeline/pipeline.ts'
import { createSchedule, type ScheduleOptions } from '../../src/pipeline/schedule.ts'
import type { PipelineEnd, Played } from '../../src/pipeline/work.ts'

/** What a simulated run looks like. Times are milliseconds, drawn around these means. */
export interface World {
  readonly schedule: ScheduleOptions
  /** Groups of each batch; the dataset ends after the last. */
  readonly batches: readonly number[]
  readonly seed: number
  readonly readMs: number
  readonly playMs: number
  /** Share of plays that take twenty times as long. */
  readonly stragglers: number
  readonly trainMs: number
  readonly publishMs: number
  readonly finishMs: number
  /** Groups at once; further ones wait, first come first served. */
  readonly slots: number
  /** Share of groups that give nothing to learn. */
  readonly unusable: number
  /** What fails, if anything: the nth call of its kind. */
  readonly failure?:
    | { readonly what: 'read' | 'play' | 'train' | 'publish' | 'finish'; readonly nth: number }
    | undefined
  readonly stopAtMs?: number | undefined
  readonly abortAtMs?: number | undefined
}

/** One thing that happened, in order. */
export type Entry =
  | { readonly type: 'play'; readonly ref: GroupRef; readonly version: number; readonly at: number }
  | {
      readonly type: 'train'
      readonly step: number
      readonly groups: readonly Played<GroupRef>[]
      readonly updates: number
      readonly at: number
    }
  | {
      readonly type: 'publish'
      readonly step: number
      readonly updates: number
      readonly at: number
    }
  | { readonly type: 'finish'; readonly step: number; readonly at: number }
  | {
      readonly type: 'discard'
      readonly ref: GroupRef
      readonly why: 'stale' | 'unused'
      readonly at: number
    }

export interface Outcome {
  readonly log: readonly Entry[]
  readonly reports: readonly number[]
  readonly end?: PipelineEnd
  readonly error?: unknown
  readonly failedAt?: number
  readonly endedAt: number
  /** Plays still under way when the run had ended. */
  readonly orphans: number
  /** Most groups at a time that were under way, or played and neither trained nor given up. */
  readonly peak: number
  /** The same without those that are known to give nothing to learn. */
  readonly usefulPeak: number
  /** Milliseconds in which the learner worked. */
  readonly learnerMs: number
  /** Milliseconds of all plays together. */
  readonly playMs: number
}

export class InjectedFailure extends Error {}

export async function simulate(world: World, clock: Clock): Promise<Outcome> {
  const random = randomStream(world.seed, 'simulation')
  const around = (mean: number) => mean * (0.2 + 1.6 * random.next())
  const log: Entry[] = []
  const counts = { read: 0, play: 0, train: 0, publish: 0, finish: 0 }
  let failedAt: number | undefined
  const mayFail = (what: keyof typeof counts) => {
    counts[what] += 1
    if (world.failure?.what !== what || counts[what] !== world.failure.nth) return
    failedAt = clock.now()
    throw new InjectedFailure(`${what} ${counts[what]}`)
  }
  const slots = createSemaphore(world.slots)
  let version = world.schedule.from
  let underWay = 0
  let open = 0
  let useful = 0
  let peak = 0
  let usefulPeak = 0
  let learnerMs = 0
  let playMs = 0
  let learnerFree: Promise<void> = Promise.resolve()
  const workAfter = async (before: Promise<void>, ms: number, act: () => void) => {
    await before
    await clock.sleep(ms)
    learnerMs += ms
    act()
  }
  const learner = (ms: number, act: () => void) => {
    learnerFree = workAfter(learnerFree, ms, act)
    return learnerFree
  }
  const abort = new AbortController()
  const stop = new AbortController()
  const timers = new AbortController()
  const after = (ms: number | undefined, act: () => void) => {
    if (ms !== undefined) clock.sleep(ms, timers.signal).then(act, () => {})
  }
  after(world.abortAtMs, () => {
    failedAt = clock.now()
    abort.abort(new InjectedFailure('abort'))
  })
  after(world.stopAtMs, () => stop.abort())

  const pipeline = runPipeline<GroupRef, GroupRef, void, number>(
    {
      schedule: createSchedule(world.schedule),
      async read(batch) {
        await clock.sleep(around(world.readMs))
        mayFail('read')
        const size = world.batches[batch]
        return size === undefined
          ? undefined
          : Array.from({ length: size }, (_, group) => ({ batch, group }))
      },
      async play(_, ref, signal) {
        open += 1
        useful += 1
        peak = Math.max(peak, open)
        usefulPeak = Math.max(usefulPeak, useful)
        underWay += 1
        try {
          await slots.acquire(signal)
          try {
            const begun = version
            log.push({ type: 'play', ref, version: begun, at: clock.now() })
            const slowness = random.next() < world.stragglers ? 20 : 1
            const ms = slowness * around(world.playMs)
            playMs += ms
            await clock.sleep(ms, signal)
            mayFail('play')
            const usable = random.next() >= world.unusable
            if (!usable) useful -= 1
            return { group: ref, version: begun, usable }
          } finally {
            slots.release()
          }
        } finally {
          underWay -= 1
        }
      },
      async train({ step, groups, updates }) {
        open -= groups.length
        useful -= groups.filter(({ usable }) => usable).length
        log.push({ type: 'train', step, groups, updates, at: clock.now() })
        const usable = groups.filter((each) => each.usable)
        const work = learner(around(world.trainMs) * usable.length, () => mayFail('train'))
        return await Promise.resolve({ updates, settled: work })
      },
      async publish(step, updates) {
        log.push({ type: 'publish', step, updates, at: clock.now() })
        await learner(around(world.publishMs), () => mayFail('publish'))
        version = step + 1
      },
      async finish({ step }) {
        await clock.sleep(around(world.finishMs))
        mayFail('finish')
        log.push({ type: 'finish', step, at: clock.now() })
        return step
      },
      discard({ usable }, ref, why) {
        open -= 1
        if (usable) useful -= 1
        log.push({ type: 'discard', ref, why, at: clock.now() })
      },
    },
    { signal: abort.signal, stop: stop.signal, clock },
  )
  const reports: number[] = []
  const outcome = () => ({
    log,
    reports,
    endedAt: clock.now(),
    orphans: underWay,
    peak,
    usefulPeak,
    learnerMs,
    playMs,
  })
  try {
    for (;;) {
      const { done, value } = await pipeline.next()
      if (done === true) return { ...outcome(), end: value }
      reports.push(value)
    }
  } catch (error) {
    return { ...outcome(), error, ...(failedAt === undefined ? {} : { failedAt }) }
  } finally {
    timers.abort()
  }
}

function createSemaphore(size: number) {
  let free = size
  const waiting: (() => void)[] = []
  return {
    async acquire(signal: AbortSignal): Promise<void> {
      signal.throwIfAborted()
      if (free > 0) {
        free -= 1
        return
      }
      await new Promise<void>((resolve, reject) => {
        const abort = () => {
          waiting.splice(waiting.indexOf(take), 1)
          reject(signal.reason as Error)
        }
        const take = () => {
          signal.removeEventListener('abort', abort)
          resolve()
        }
        waiting.push(take)
        signal.addEventListener('abort', abort, { once: true })
      })
    },
    release(): void {
      const next = waiting.shift()
      if (next === undefined) free += 1
      else next()
    },
  }
}
