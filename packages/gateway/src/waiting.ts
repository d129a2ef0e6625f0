import { after, asError, type Clock } from '@tiltyard/core'

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
  let abort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(asError(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The promise's value, or undefined when it takes longer than so many milliseconds. */
export function unlessQuiet<T>(
  promise: Promise<T>,
  clock: Clock,
  milliseconds: number,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const callOff = after(clock, milliseconds, () => resolve(undefined))
    promise.then(resolve, reject)
    promise.then(callOff, callOff)
  })
}
