import { after, DeadlineError, type Clock } from '@tiltyard/core'

/** What may end a call's work early: a stop, or the time that a call has. */
export interface Stopping {
  /** Why it was stopped. */
  readonly reason: Error | undefined
  /** Of the work under way; aborted by a stop. */
  readonly signal: AbortSignal
  /** The first reason counts. */
  stop(reason: Error): void
  /** No more work comes. What is kept of a call for its client to come back for is then small. */
  end(): void
  /**
   * Runs work that may be stopped; one at a time, and none after a deadline.
   * @throws the reason of a stop, or DeadlineError after so many milliseconds; at once, though the work ignores its signal.
   */
  run<T>(work: (signal: AbortSignal) => Promise<T>, milliseconds: number): Promise<T>
}

/**
 * One signal serves all of a call, with no listener between a signal and another: those would cost more than the rest of the
 * waiting.
 */
export function createStopping(clock: Clock): Stopping {
  let controller: AbortController | undefined
  let reason: Error | undefined
  let reject: ((reason: Error) => void) | undefined
  const current = () => (controller ??= new AbortController())
  return {
    get reason() {
      return reason
    },
    get signal() {
      return current().signal
    },
    stop(why) {
      reason ??= why
      current().abort(reason)
      reject?.(reason)
    },
    end() {
      controller = undefined
    },
    async run(work, milliseconds) {
      if (reason !== undefined) throw reason
      let callOff = () => {}
      const ended = new Promise<never>((_, fail) => {
        reject = fail
        callOff = after(clock, milliseconds, () => {
          const late = new DeadlineError('a reply', milliseconds)
          current().abort(late)
          fail(late)
        })
      })
      try {
        return await Promise.race([work(current().signal), ended])
      } finally {
        reject = undefined
        callOff()
      }
    },
  }
}
