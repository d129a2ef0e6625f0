import { DeadlineError, type FailurePhase } from '@tiltyard/core'

import type { Alarm, Alarms } from '../alarms.ts'
import { EpisodeError } from '../episode-error.ts'

export interface WaitFor {
  readonly phase: FailurePhase
  /** For the error. */
  readonly what: () => string
  readonly milliseconds: number
}

/**
 * Bounds the waits of one play, one after the other. A wait that is too long ends the play, so all of them share one signal. The
 * play begins and ends each; what it throws in between is the wait's failure.
 */
export interface Watch {
  /** Aborted from outside, and at a deadline. */
  readonly signal: AbortSignal
  begin(wait: WaitFor): void
  /** @throws EpisodeError when the deadline passed. */
  end(): void
  /**
   * The play, unless one of its waits goes on for `graceMs` after its deadline: then it is left behind.
   * @throws EpisodeError of the phase that failed; the signal's reason as it is, when it was aborted from outside.
   */
  bound<T>(play: Promise<T>): Promise<T>
}

/** `stop` is what tells the play to stop; the watch uses it for its deadlines too. */
export function createWatch(stop: AbortController, alarms: Alarms, graceMs: number): Watch {
  const { signal } = stop
  let wait: WaitFor | undefined
  let expired: EpisodeError | undefined
  let leaveBehind: ((error: EpisodeError) => void) | undefined

  const grace: Alarm = { at: 0, ring: () => leaveBehind?.(expired!) }
  const deadline: Alarm = {
    at: 0,
    ring() {
      const { phase, what, milliseconds } = wait!
      const error = new DeadlineError(what(), milliseconds)
      expired = new EpisodeError(phase, error)
      stop.abort(error)
      alarms.set(grace, graceMs)
    },
  }
  // How long a play may take to stop that was told so from outside is for them to say.
  const clear = () => alarms.clear(deadline)
  signal.addEventListener('abort', clear, { once: true })

  const blamed = (error: unknown): unknown => {
    if (expired !== undefined) return expired
    if (signal.aborted) return signal.reason
    return wait === undefined ? error : new EpisodeError(wait.phase, error)
  }

  return {
    signal,
    begin(next) {
      wait = next
      alarms.set(deadline, next.milliseconds)
    },
    end() {
      if (expired !== undefined) throw expired
      alarms.clear(deadline)
      wait = undefined
    },
    async bound(play) {
      try {
        return await new Promise((resolve, reject) => {
          leaveBehind = reject
          play.then(resolve, (error: unknown) => reject(blamed(error)))
        })
      } finally {
        signal.removeEventListener('abort', clear)
        alarms.clear(deadline)
        alarms.clear(grace)
      }
    },
  }
}
