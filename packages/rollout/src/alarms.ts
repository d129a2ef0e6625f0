import type { Clock } from '@tiltyard/core'

/** One deadline at a time, for waits that follow each other. */
export interface Alarm {
  /** Rings after so many milliseconds, unless it is set anew or cleared before. */
  set(milliseconds: number, ring: () => void): void
  clear(): void
}

/** Alarms that share their timers. */
export interface Alarms {
  alarm(): Alarm
  /** Nothing rings any more, and nothing is left that keeps a process alive. */
  close(): void
}

/**
 * Alarms that set a timer only when none is under way that ends early enough: of a thousand waits that are over in time, and whose
 * deadlines lie later and later, one sets a timer.
 */
export function createAlarms(clock: Clock): Alarms {
  const timers = new AbortController()
  const pending = new Set<{ at: number; ring: () => void }>()
  let nextLook = Infinity

  const lookAt = (at: number) => {
    if (at >= nextLook) return
    nextLook = at
    clock.sleep(at - clock.now(), timers.signal).then(look, () => {})
  }
  const look = () => {
    nextLook = Infinity
    const now = clock.now()
    const due = [...pending].filter(({ at }) => at <= now).toSorted((a, b) => a.at - b.at)
    for (const one of due) pending.delete(one)
    for (const { ring } of due) ring()
    let earliest = Infinity
    for (const { at } of pending) earliest = Math.min(earliest, at)
    if (earliest < Infinity) lookAt(earliest)
  }

  return {
    alarm() {
      const own = { at: Infinity, ring: () => {} }
      return {
        set(milliseconds, ring) {
          own.at = clock.now() + milliseconds
          own.ring = ring
          pending.add(own)
          lookAt(own.at)
        },
        clear() {
          pending.delete(own)
        },
      }
    },
    close() {
      pending.clear()
      timers.abort(closed)
    },
  }
}

const closed = new Error('the alarms are closed')
