import { DeadlineError } from './errors.ts'

/** Time as an argument, so that tests and simulations bring their own. */
export interface Clock {
  /** Milliseconds, monotonic. */
  now(): number
  /** Resolves after so many milliseconds; rejects with the signal's reason when it is aborted before. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /**
   * Calls `work` after so many milliseconds, unless the returned function is called first; that is harmless later. For timers that
   * are mostly called off, where a `sleep` with a signal of its own costs much. Absent: `after` sleeps instead.
   */
  after?(milliseconds: number, work: () => void): () => void
}

export const systemClock: Clock = {
  now: () => performance.now(),
  after(milliseconds, work) {
    const timer = setTimeout(work, milliseconds)
    return () => clearTimeout(timer)
  },
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(asError(signal.reason))
        return
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }, milliseconds)
      const abort = () => {
        clearTimeout(timer)
        reject(asError(signal?.reason))
      }
      signal?.addEventListener('abort', abort, { once: true })
    }),
}

/** Calls `work` after so many milliseconds on this clock, unless the returned function is called first. */
export function after(clock: Clock, milliseconds: number, work: () => void): () => void {
  if (clock.after !== undefined) return clock.after(milliseconds, work)
  const off = new AbortController()
  clock.sleep(milliseconds, off.signal).then(work, () => {})
  return () => off.abort(calledOff)
}

// An abort without a reason makes an error with its stack, which would be most of a timer's cost.
const calledOff = new Error('the timer was called off')

export interface DeadlineOptions {
  /** What is waited for, for the error. */
  readonly waitingFor: string
  /** Milliseconds; absent: no deadline. */
  readonly milliseconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock
}

/**
 * Runs `work` with a signal that aborts at the deadline or with the outer signal, whichever comes first.
 * @throws DeadlineError at the deadline, or the outer signal's reason; also when `work` ignores its signal. What such work does later is ignored.
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  options: DeadlineOptions,
): Promise<T> {
  const { waitingFor, milliseconds, signal, clock = systemClock } = options
  signal?.throwIfAborted()
  const inner = new AbortController()
  let over = () => {}
  const stopped = new Promise<never>((_, reject) => {
    const stop = (reason: unknown) => {
      inner.abort(reason)
      reject(asError(reason))
    }
    const abort = () => stop(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    const callOff =
      milliseconds === undefined
        ? undefined
        : after(clock, milliseconds, () => stop(new DeadlineError(waitingFor, milliseconds)))
    over = () => {
      signal?.removeEventListener('abort', abort)
      callOff?.()
    }
  })
  stopped.catch(() => {})
  try {
    return await Promise.race([work(inner.signal), stopped])
  } finally {
    over()
  }
}

/** An abort reason as an error. */
export function asError(reason: unknown): Error {
  if (reason instanceof Error) return reason
  return new DOMException(
    typeof reason === 'string' ? reason : 'This operation was aborted',
    'AbortError',
  )
}
