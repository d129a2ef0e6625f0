import { after, type Clock } from '@tiltyard/core'

import { abandoned } from '../errors.ts'
import { deferred } from '../waiting.ts'
import type { OpenRecord } from './record.ts'
import { createStopping, type Stopping } from './stopping.ts'

/** A client waits for a call. Call one of the two when it stops waiting; `left` may follow `delivered` when bytes were lost. */
interface CallReader {
  delivered(): void
  left(): void
}

/**
 * Who waits for a call. A call that nobody waits for goes on for a grace period, so that its client can come back for it. Holds
 * nothing of the call's content: it lives as long as the call may be asked for again.
 */
export interface CallReaders {
  readonly stopping: Stopping
  readonly stop: (reason: Error) => void
  /** Whether somebody waits, or comes to; false when the call is stopped before. */
  readonly claimed: () => Promise<boolean>
  /** Nothing waits for the call's end any more. */
  readonly settle: () => void
  readonly attach: () => CallReader
  readonly state: () => 'running' | 'delivered' | 'orphaned' | 'failed'
}

export function createReaders(record: OpenRecord, clock: Clock, orphanMs: number): CallReaders {
  const stopping = createStopping(clock)
  const claims: ((claimed: boolean) => void)[] = []
  let readers = 0
  let endGrace = () => {}
  const wake = (isClaimed: boolean) => {
    for (const resolve of claims.splice(0)) resolve(isClaimed)
  }
  const stop = (reason: Error) => {
    stopping.stop(reason)
    wake(false)
  }
  const orphan = () => {
    if (record.status !== 'running') return
    endGrace = after(clock, orphanMs, () => stop(abandoned()))
  }
  return {
    stopping,
    stop,
    settle() {
      endGrace()
      stopping.end()
    },

    async claimed() {
      if (stopping.reason !== undefined) return false
      if (readers > 0 || record.delivered) return true
      const claim = deferred<boolean>()
      claims.push(claim.resolve)
      return claim.promise
    },

    attach() {
      readers += 1
      endGrace()
      wake(true)
      let isReading = true
      return {
        delivered() {
          if (isReading) readers -= 1
          isReading = false
          record.delivered = true
        },
        left() {
          if (isReading) readers -= 1
          else record.delivered = false
          isReading = false
          if (readers === 0 && !record.delivered) orphan()
        },
      }
    },

    state() {
      if (record.status === 'failed' || record.status === 'cancelled') return 'failed'
      if (record.delivered) return 'delivered'
      return readers > 0 ? 'running' : 'orphaned'
    },
  }
}
