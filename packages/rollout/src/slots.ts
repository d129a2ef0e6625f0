import { asError, ConfigError } from '@tiltyard/core'

import type { CancelSignal } from './cancellation.ts'

/** The right to have an episode under way. */
export interface SlotLease {
  /** Gives the slot back. Later calls do nothing. */
  release(): void
}

/** So many slots, given first come, first served. */
export interface Slots {
  readonly size: number
  readonly inUse: number
  readonly waiting: number
  /** Most slots that were in use at once. */
  readonly peak: number
  /** Resolves when it is this caller's turn. Rejects with the signal's reason when that comes first, and then takes no slot. */
  acquire(signal?: CancelSignal): Promise<SlotLease>
}

/**
 * `size` episodes may be under way at once, in everything that shares these slots.
 * @throws ConfigError when `size` is no positive integer.
 */
export function createSlots(size: number): Slots {
  if (!Number.isInteger(size) || size < 1) {
    throw new ConfigError('slots', [
      { at: 'size', message: `expected a whole number of at least 1, got ${size}` },
    ])
  }
  // A Set keeps the order of arrival and forgets a cancelled waiter in constant time.
  const queue = new Set<() => void>()
  let inUse = 0
  let peak = 0

  const lease = (): SlotLease => {
    inUse += 1
    peak = Math.max(peak, inUse)
    let held = true
    return {
      release() {
        if (!held) return
        held = false
        inUse -= 1
        const [next] = queue
        next?.()
      },
    }
  }

  return {
    size,
    get inUse() {
      return inUse
    },
    get waiting() {
      return queue.size
    },
    get peak() {
      return peak
    },
    acquire(signal) {
      if (signal?.aborted === true) return Promise.reject(asError(signal.reason))
      if (inUse < size) return Promise.resolve(lease())
      return new Promise((resolve, reject) => {
        const abort = () => {
          queue.delete(turn)
          reject(asError(signal?.reason))
        }
        const turn = () => {
          queue.delete(turn)
          signal?.removeEventListener('abort', abort)
          resolve(lease())
        }
        queue.add(turn)
        signal?.addEventListener('abort', abort, { once: true })
      })
    },
  }
}
