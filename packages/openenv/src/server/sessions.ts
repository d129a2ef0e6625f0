import { randomUUID } from 'node:crypto'

import { asError, type Clock, summarizeError, withDeadline, type Logger } from '@tiltyard/core'

import type { Play } from './play.ts'

/** No session is free. */
export class CapacityError extends Error {
  readonly active: number
  readonly most: number

  constructor(active: number, most: number) {
    super(`Server at capacity: ${active}/${most} sessions active. Cannot accept new connections.`)
    this.name = 'CapacityError'
    this.active = active
    this.most = most
  }
}

/** One client's place in the server: at most one live episode, and one operation at a time. */
export interface Session {
  readonly id: string
  /** Whether a socket holds it. */
  readonly isAttached: boolean
  /** Runs an operation after those before it, in the time of an answer. Later ones fail once the session is closed. */
  run<T>(what: string, work: (play: Play, signal: AbortSignal) => Promise<T>): Promise<T>
  /** Gives it to a socket. False: another has it. */
  attach(): boolean
  /** The socket is gone. Ends a session that a socket opened, or that was to be closed. */
  detach(): Promise<void>
  /** Ends it now, or when its socket leaves. Says which. */
  finish(): Promise<'closed' | 'closing'>
}

export interface Sessions {
  readonly active: number
  /** Ends idle ones first when all places are taken. @throws CapacityError */
  open(by: 'socket' | 'http'): Promise<Session>
  find(id: string): Session | undefined
  /** Ends those that no socket holds and nobody asked for, for as long as the limit says. */
  sweep(): Promise<void>
  close(): Promise<void>
}

export interface SessionsOptions {
  readonly createPlay: () => Play
  readonly limits: { readonly sessions: number; readonly idleMs: number; readonly answerMs: number }
  readonly clock: Clock
  readonly logger: Logger
}

export function createSessions(options: SessionsOptions): Sessions {
  const { createPlay, limits, clock, logger } = options
  const open = new Map<
    string,
    { session: Session; end: () => Promise<void>; idleMs: () => number }
  >()

  const make = (by: 'socket' | 'http'): Session => {
    const id = randomUUID()
    const play = createPlay()
    const over = new AbortController()
    let tail: Promise<unknown> = Promise.resolve()
    let usedAt = clock.now()
    let isAttached = by === 'socket'
    let isClosing = false

    const end = async () => {
      if (!open.delete(id)) return
      over.abort(new Error('the session is over'))
      try {
        await play.close()
      } catch (error) {
        logger.warn('a session was left with an error', { error: summarizeError(error).name })
      }
    }
    const session: Session = {
      id,
      get isAttached() {
        return isAttached
      },
      run(what, work) {
        const begin = async () => {
          if (over.signal.aborted) throw asError(over.signal.reason)
          usedAt = clock.now()
          return await withDeadline((signal) => work(play, signal), {
            waitingFor: what,
            milliseconds: limits.answerMs,
            signal: over.signal,
            clock,
          })
        }
        const result = tail.then(begin)
        tail = result.catch(() => {})
        return result
      },
      attach() {
        if (isAttached) return false
        isAttached = true
        return true
      },
      async detach() {
        isAttached = false
        usedAt = clock.now()
        if (by === 'socket' || isClosing) await end()
      },
      async finish() {
        if (isAttached) {
          isClosing = true
          return 'closing'
        }
        await end()
        return 'closed'
      },
    }
    const idleMs = () => (isAttached ? 0 : clock.now() - usedAt)
    open.set(id, { session, end, idleMs })
    return session
  }

  return {
    get active() {
      return open.size
    },
    async open(by) {
      if (open.size >= limits.sessions) await sweep()
      if (open.size >= limits.sessions) throw new CapacityError(open.size, limits.sessions)
      return make(by)
    },
    find: (id) => open.get(id)?.session,
    sweep,
    async close() {
      await Promise.all([...open.values()].map(({ end }) => end()))
    },
  }

  async function sweep(): Promise<void> {
    const late = [...open.values()].filter(({ idleMs }) => idleMs() >= limits.idleMs)
    await Promise.all(late.map(({ end }) => end()))
  }
}
