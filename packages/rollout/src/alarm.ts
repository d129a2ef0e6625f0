import type { Clock } from '@tiltyard/core'

/** One deadline at a time, for waits that follow each other. */
export interface Alarm {
  /** Rings after so many milliseconds, unless it is set anew, cleared or closed before. */
  set(milliseconds: number, ring: () => void): void
  clear(): void
  /** Leaves nothing behind that keeps a process alive. */
  close(): void
}

/**
 * An alarm that sets a timer only when none is under way that ends early enough: of a thousand waits that are over in time, and
 * whose deadlines lie later and later, one sets a timer.
 */
export function createAlarm(clock: Clock): Alarm {
  const timers = new AbortController()
  let due: { readonly at: number; readonly ring: () => void } | undefined
  let nextLook = Infinity

  const lookAt = (at: number) => {
    nextLook = at
    clock.sleep(at - clock.now(), timers.signal).then(look, () => {})
  }
  const look = () => {
    nextLook = Infinity
    if (due === undefined) return
    if (clock.now() < due.at) {
      lookAt(due.at)
      return
    }
    const { ring } = due
    due = undefined
    ring()
  }

  return {
    set(milliseconds, ring) {
      const at = clock.now() + milliseconds
      due = { at, ring }
      if (at < nextLook) lookAt(at)
    },
    clear() {
      due = undefined
    },
    close() {
      due = undefined
      timers.abort(closed)
    },
  }
}

const closed = new Error('the alarm is closed')
