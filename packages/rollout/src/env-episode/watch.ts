import { DeadlineError, type FailurePhase } from '@tiltyard/core'

import type { Alarms } from '../alarms.ts'
import { EpisodeError } from '../episode-error.ts'

interface WaitFor {
  readonly phase: FailurePhase
  /** For the error. */
  readonly what: string
  readonly milliseconds: number
}

/** Bounds the waits of one play, one after the other. A wait that is too long ends the play, so all of them share one signal. */
export interface Watch {
  /** Aborted with the outer signal, and at a deadline. */
  readonly signal: AbortSignal
  /** Runs one wait. @throws EpisodeError of its phase; the outer signal's reason as it is. */
  during<T>(wait: WaitFor, work: () => Promise<T>): Promise<T>
  /** The play, unless one of its waits goes on for `graceMs` after its deadline: then it is left behind. */
  bound<T>(play: Promise<T>): Promise<T>
}

export function createWatch(outer: AbortSignal, alarms: Alarms, graceMs: number): Watch {
  const controller = new AbortController()
  const alarm = alarms.alarm()
  let expired: EpisodeError | undefined
  let leaveBehind: ((error: EpisodeError) => void) | undefined

  const abort = () => {
    controller.abort(outer.reason)
    // How long the play may take to stop is the outer caller's to say.
    alarm.clear()
  }
  const expire = ({ phase, what, milliseconds }: WaitFor) => {
    const error = new DeadlineError(what, milliseconds)
    const failure = new EpisodeError(phase, error)
    expired = failure
    controller.abort(error)
    alarm.set(graceMs, () => leaveBehind?.(failure))
  }

  if (outer.aborted) abort()
  else outer.addEventListener('abort', abort, { once: true })

  return {
    signal: controller.signal,
    async during<T>(wait: WaitFor, work: () => Promise<T>) {
      alarm.set(wait.milliseconds, () => expire(wait))
      let value: T
      try {
        value = await work()
      } catch (error) {
        if (expired === undefined && outer.aborted) throw outer.reason
        throw expired ?? new EpisodeError(wait.phase, error)
      }
      if (expired !== undefined) throw expired
      alarm.clear()
      return value
    },
    async bound(play) {
      try {
        return await new Promise((resolve, reject) => {
          leaveBehind = reject
          play.then(resolve, reject)
        })
      } finally {
        outer.removeEventListener('abort', abort)
        alarm.clear()
      }
    },
  }
}
