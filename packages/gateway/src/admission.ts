import { after, type Clock } from '@tiltyard/core'

import { policyUpdating, shuttingDown } from './errors.ts'

/** Lets calls in, holds them while paused, and tells when none is under way. */
export interface Admission {
  /** Resolves when a call may begin. @throws ApiError when the pause lasts too long, or the gateway closes. */
  enter(): Promise<void>
  leave(): void
  pause(): void
  resume(): void
  close(): void
  /** Resolves when no call is under way. */
  drained(): Promise<void>
  readonly inFlight: number
}

export function createAdmission(clock: Clock, holdMs: number): Admission {
  let inFlight = 0
  let paused = false
  let closed = false
  let waiting: (() => void)[] = []
  let draining: (() => void)[] = []
  const wake = () => {
    const woken = waiting
    waiting = []
    for (const resume of woken) resume()
  }
  return {
    get inFlight() {
      return inFlight
    },
    async enter() {
      if (paused && !closed) {
        const isLate = await new Promise<boolean>((resolve) => {
          const callOff = after(clock, holdMs, () => resolve(true))
          waiting.push(() => {
            callOff()
            resolve(false)
          })
        })
        if (isLate) throw policyUpdating()
      }
      if (closed) throw shuttingDown()
      inFlight += 1
    },
    leave() {
      inFlight -= 1
      if (inFlight > 0) return
      for (const resolve of draining) resolve()
      draining = []
    },
    pause() {
      paused = true
    },
    resume() {
      paused = false
      wake()
    },
    close() {
      closed = true
      wake()
    },
    drained: () =>
      inFlight === 0 ? Promise.resolve() : new Promise((resolve) => draining.push(resolve)),
  }
}
