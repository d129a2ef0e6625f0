import { asError, type Clock } from '@tiltyard/core'

/**
 * A clock that moves only when told to. Code that sleeps on it runs as fast as the machine can, in one order. Code that waits
 * for anything else should be done with it in a turn of the event loop: the clock doesn't wait for it.
 */
export interface SimulatedClock extends Clock {
  /** Sleeps under way. */
  readonly sleeping: number
  /** Moves on by so many milliseconds, waking sleepers in order of time, then of arrival. */
  advance(milliseconds: number): Promise<void>
  /**
   * Moves on from sleeper to sleeper until `work` settles, and gives what it gave.
   * @throws when nothing sleeps and `work` still waits: then it would wait for ever.
   */
  drive<T>(work: Promise<T>): Promise<T>
}

/** Turns of the event loop without a sleeper after which work counts as stuck. */
const STUCK_TURNS = 100

interface Sleeper {
  readonly at: number
  wake(): void
}

export function simulatedClock(start = 0): SimulatedClock {
  let now = start
  // Kept sorted by time; equal times in order of arrival.
  const sleepers: Sleeper[] = []

  const insert = (sleeper: Sleeper) => {
    let low = 0
    let high = sleepers.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (sleepers[middle]!.at <= sleeper.at) low = middle + 1
      else high = middle
    }
    sleepers.splice(low, 0, sleeper)
  }
  const wakeNext = () => {
    const sleeper = sleepers.shift()!
    now = Math.max(now, sleeper.at)
    sleeper.wake()
  }

  return {
    now: () => now,
    get sleeping() {
      return sleepers.length
    },
    sleep: (milliseconds, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(asError(signal.reason))
          return
        }
        const abort = () => {
          sleepers.splice(sleepers.indexOf(sleeper), 1)
          reject(asError(signal?.reason))
        }
        const sleeper: Sleeper = {
          at: now + milliseconds,
          wake() {
            signal?.removeEventListener('abort', abort)
            resolve()
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        insert(sleeper)
      }),

    async advance(milliseconds) {
      const until = now + milliseconds
      await settled()
      while (sleepers.length > 0 && sleepers[0]!.at <= until) {
        wakeNext()
        await settled()
      }
      now = until
    },

    async drive(work) {
      const state = { isDone: false }
      const mark = () => {
        state.isDone = true
      }
      work.then(mark, mark)
      for (let idleTurns = 0; ;) {
        await settled()
        if (state.isDone) return work
        if (sleepers.length > 0) {
          wakeNext()
          idleTurns = 0
        } else if (idleTurns < STUCK_TURNS) idleTurns += 1
        else throw new Error(`stuck at ${now} ms: the work waits, and nothing is under way`)
      }
    },
  }
}

/** Resolves when all that can run without time passing has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
