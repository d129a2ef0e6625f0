import { asError, summarizeError, withDeadline, type RunEvent } from '@tiltyard/core'

import type { Session } from './session.ts'

/** Milliseconds that the record, and then all that is to be closed, get to take leave of a run: shorter after an abort, which has 2 s in all. */
const LEAVE_MS = { failed: 750, aborted: 250 }

interface EndOfRun {
  readonly end: 'completed' | 'interrupted'
  /** Steps done in all. */
  readonly steps: number
}

/** Brings a run to its end once, whatever it is: completed, left, stopped, failed or aborted. */
export interface Ending {
  /** What is to be closed at the end, in reverse order. */
  closes(close: () => Promise<void>): void
  /**
   * Waits for what opens, to be closed at the end. After an abort nobody waits: what opens later is closed then.
   * @throws what the opening throws, or the reason of the abort.
   */
  opens<T>(opening: Promise<T>, close: (opened: T) => Promise<void>): Promise<T>
  /** Takes note of the failure that ends the run; `steps` are done. */
  failed(cause: unknown, steps: number): Promise<void>
  /**
   * Unless the run failed: completes it and records how it ended. Then closes everything.
   * @throws what `complete` throws, or what could not be recorded.
   */
  settle(complete: () => Promise<EndOfRun>): Promise<void>
}

export function createEnding(session: Session): Ending {
  const { opened, clock, logger, control, wallClock } = session
  const { writer } = opened
  const closing: (() => Promise<void>)[] = [() => writer.close()]
  let hasFailed = false
  let isOver = false

  const isAborted = () => control.signal?.aborted === true
  const bounded = async (waitingFor: string, work: () => Promise<void>) => {
    const milliseconds = isAborted() ? LEAVE_MS.aborted : LEAVE_MS.failed
    try {
      await withDeadline(work, { waitingFor, milliseconds, clock })
    } catch (error) {
      logger.warn('a part of the run was left behind', { error: summarizeError(error).message })
    }
  }

  const failed = async (cause: unknown, steps: number) => {
    hasFailed = true
    session.end(asError(cause))
    const error = summarizeError(cause)
    const aborted = isAborted()
    const end: RunEvent = {
      type: 'end',
      status: aborted ? 'interrupted' : 'failed',
      step: steps,
      at: wallClock(),
      error,
    }
    const failure: RunEvent = { type: 'failure', step: steps, phase: 'train', error }
    await bounded('the record to take the failure', async () => {
      for (const event of aborted ? [end] : [failure, end]) await writer.append(event)
      await writer.flush()
    })
  }

  const close = async () => {
    session.end(new Error('the run is over'))
    isOver = true
    if (hasFailed)
      await Promise.all(closing.map((each) => bounded('a part of the run to close', each)))
    else for (const each of closing) await each()
  }

  return {
    closes: (each) => closing.unshift(each),
    opens<T>(opening: Promise<T>, closeOpened: (opened: T) => Promise<void>) {
      const adopt = (it: T) => {
        const closeIt = () => closeOpened(it)
        if (isOver) void bounded('what opened too late to close', closeIt)
        else closing.unshift(closeIt)
      }
      opening.then(adopt, () => {})
      return orAborted(opening, session.signal)
    },
    failed,
    async settle(complete) {
      if (hasFailed) return await close()
      try {
        const { end: status, steps } = await orAborted(complete(), session.signal)
        await writer.append({ type: 'end', status, step: steps, at: wallClock() })
        await writer.flush()
      } catch (error) {
        await failed(error, opened.from)
        throw error
      } finally {
        await close()
      }
    },
  }
}

/** The promise, or the signal's reason as soon as it is aborted. What the promise does later is ignored. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  promise.catch(() => {})
  signal.throwIfAborted()
  let abort: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(asError(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    if (abort !== undefined) signal.removeEventListener('abort', abort)
  }
}
