import { asError } from '@tiltyard/core'

/** Reason for ending a wait that nobody reads: making an error for each would cost more than the wait. */
export const SETTLED = 'settled'

/** A promise that is settled from outside. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
}

export function deferred<T>(): Deferred<T> {
  let settle: ((value: T) => void) | undefined
  const promise = new Promise<T>((resolve) => {
    settle = resolve
  })
  return { promise, resolve: (value) => settle?.(value) }
}

/** The work's result, or the signal's reason as soon as it aborts. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  const done = new AbortController()
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(asError(signal.reason)), {
      once: true,
      signal: done.signal,
    })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    done.abort(SETTLED)
  }
}
