import { type DeadlineOptions, withDeadline } from '@tiltyard/core'

/**
 * Calls an author's code in a time limit. Its signal is made when it is first asked for, and a result that is no promise sets no
 * timer: most tools are a few lines that read a table, and timers would be most of their cost.
 * @throws what the code throws, DeadlineError at the limit, or the outer signal's reason.
 */
export async function bounded<Result>(
  call: (signal: () => AbortSignal) => Result | PromiseLike<Result>,
  options: DeadlineOptions,
): Promise<Result> {
  options.signal?.throwIfAborted()
  let inner: AbortController | undefined
  const controller = () => (inner ??= new AbortController())
  const returned = call(() => controller().signal)
  if (!isPromise(returned)) return returned
  return await withDeadline(async (signal) => {
    signal.addEventListener('abort', () => controller().abort(signal.reason), { once: true })
    return await returned
  }, options)
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as Partial<PromiseLike<T>>).then === 'function'
  )
}
