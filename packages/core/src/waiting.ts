import { DeadlineError } from './errors.ts'

/** Time as an argument, so that tests and simulations bring their own. */
export interface Clock {
  /** Milliseconds, monotonic. */
  now(): number
  /** Resolves after so many milliseconds; rejects with the signal's reason when it is aborted before. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  now: () => performance.now(),
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

export interface DeadlineOptions {
  /** What is waited for, for the error. */
  readonly waitingFor: string
  /** Milliseconds; absent: no deadline. */
  readonly milliseconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock
}

// An abort without a reason makes an error with its stack, which would be most of a deadline's cost.
const finished = new Error('the work came to its end')

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
  const over = new AbortController()
  const stopped = new Promise<never>((_, reject) => {
    const stop = (reason: unknown) => {
      inner.abort(reason)
      reject(asError(reason))
    }
    const abort = () => stop(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    over.signal.addEventListener('abort', () => signal?.removeEventListener('abort', abort), {
      once: true,
    })
    if (milliseconds !== undefined) {
      clock.sleep(milliseconds, over.signal).then(
        () => stop(new DeadlineError(waitingFor, milliseconds)),
        () => {},
      )
    }
  })
  stopped.catch(() => {})
  const working = work(inner.signal)
  working.catch(() => {})
  try {
    return await Promise.race([working, stopped])
  } finally {
    over.abort(finished)
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
