import type { Clock, LogFields, Logger } from '@tiltyard/core'

/** Warnings that last: the first at once, then one in a while, with a count of those left out. */
export interface Notices {
  say(about: string, message: string, fields?: LogFields): void
  /** What was said about is over; told if it was said. */
  over(about: string, message: string): void
}

const REPEAT_MS = 30_000

export function createNotices(logger: Logger, clock: Clock): Notices {
  const said = new Map<string, { at: number; left: number; began: number }>()
  return {
    say(about, message, fields) {
      const now = clock.now()
      const last = said.get(about)
      if (last !== undefined && now - last.at < REPEAT_MS) {
        last.left += 1
        return
      }
      logger.warn(message, {
        ...fields,
        ...(last !== undefined && last.left > 0 && { alsoSince: last.left }),
      })
      said.set(about, { at: now, left: 0, began: last?.began ?? now })
    },
    over(about, message) {
      const last = said.get(about)
      if (last === undefined) return
      said.delete(about)
      logger.info(message, { pausedMs: Math.round(clock.now() - last.began) })
    },
  }
}
