import type { Clock } from '@tiltyard/core'

/** A deadline for one wait, or for waits that follow each other. */
export interface Alarm {
  ring(): void
  /** When it rings, by the clock of the alarms that it is set in. */
  at?: number
}

/** Alarms that share their timers. */
export interface Alarms {
  /** Rings after so many milliseconds, unless it is set anew or cleared before. */
  set(alarm: Alarm, milliseconds: number): void
  clear(alarm: Alarm): void
  /** Nothing rings any more, and nothing is left that keeps a process alive. */
  close(): void
}

/**
 * Alarms that set a timer only when none is under way that ends early enough: of a thousand waits that are over in time, and whose
 * deadlines lie later and later, one sets a timer.
 */
export function createAlarms(clock: Clock): Alarms {
  const timers = new AbortController()
  const pending = new Set<Alarm>()
  let nextLook = Infinity

  const lookAt = (at: number) => {
    if (at >= nextLook) return
    nextLook = at
    clock.sleep(at - clock.now(), timers.signal).then(look, () => {})
  }
  const look = () => {
    nextLook = Infinity
    const now = clock.now()
    const due = [...pending].filter((alarm) => alarm.at! <= now).toSorted((a, b) => a.at! - b.at!)
    for (const alarm of due) pending.delete(alarm)
    for (const alarm of due) alarm.ring()
    let earliest = Infinity
    for (const { at } of pending) earliest = Math.min(earliest, at!)
    if (earliest < Infinity) lookAt(earliest)
  }

  return {
    set(alarm, milliseconds) {
      alarm.at = clock.now() + milliseconds
      pending.add(alarm)
      lookAt(alarm.at)
    },
    clear(alarm) {
      pending.delete(alarm)
    },
    close() {
      pending.clear()
      timers.abort(closed)
    },
  }
}

const closed = new Error('the alarms are closed')
