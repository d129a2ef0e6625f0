import { asError } from '@tiltyard/core'

/** Lets in so much at a time, in order of arrival. */
export interface Gate {
  /** Waits for room, runs, makes room again. What is bigger than the gate goes alone. */
  through<T>(size: number, work: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

interface Waiting {
  readonly size: number
  readonly enter: () => void
}

export function createGate(room: number): Gate {
  let used = 0
  const queue: Waiting[] = []

  const admit = () => {
    while (queue.length > 0) {
      const { size, enter } = queue[0]!
      if (used > 0 && used + size > room) return
      queue.shift()
      used += size
      enter()
    }
  }
  const wait = (size: number, signal: AbortSignal | undefined) =>
    new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(asError(signal.reason))
        return
      }
      const abort = () => {
        const at = queue.indexOf(waiting)
        if (at === -1) return
        queue.splice(at, 1)
        reject(asError(signal?.reason))
        admit()
      }
      const waiting: Waiting = {
        size,
        enter() {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      signal?.addEventListener('abort', abort, { once: true })
      queue.push(waiting)
      admit()
    })

  return {
    async through(size, work, signal) {
      await wait(size, signal)
      try {
        return await work()
      } finally {
        used -= size
        admit()
      }
    },
  }
}
