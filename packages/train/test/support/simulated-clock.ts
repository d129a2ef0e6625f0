import type { Clock } from '@tiltyard/core'

/** Time that jumps to the next sleeper whenever nothing else is left to do. */
export interface SimulatedClock extends Clock {
  /** Runs until the promise settles. Rejects when it waits for something that no sleeper will bring. */
  run<T>(promise: Promise<T>): Promise<T>
}

interface Sleeper {
  readonly at: number
  readonly order: number
  readonly wake: () => void
}

export function simulatedClock(): SimulatedClock {
  const sleepers = new Set<Sleeper>()
  let time = 0
  let order = 0

  const sleep = (milliseconds: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error)
        return
      }
      const abort = () => {
        sleepers.delete(sleeper)
        reject(signal?.reason as Error)
      }
      const sleeper: Sleeper = {
        at: time + milliseconds,
        order: (order += 1),
        wake: () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', abort, { once: true })
    })

  const wakeNext = (): boolean => {
    let first: Sleeper | undefined
    for (const sleeper of sleepers) {
      if (
        first === undefined ||
        sleeper.at < first.at ||
        (sleeper.at === first.at && sleeper.order < first.order)
      )
        first = sleeper
    }
    if (first === undefined) return false
    sleepers.delete(first)
    time = Math.max(time, first.at)
    first.wake()
    return true
  }

  return {
    now: () => time,
    sleep,
    async run(promise) {
      const state = { settled: false }
      const done = promise.finally(() => {
        state.settled = true
      })
      done.catch(() => {})
      for (;;) {
        await quiet()
        if (state.settled) return await done
        if (!wakeNext()) throw new Error(`nothing is left to wait for at ${time} ms`)
      }
    },
  }
}

/** Lets all promise callbacks run. */
function quiet(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
