/** Calls off what belongs together: a group, a batch. */
export interface Cancellation {
  readonly isCancelled: boolean
  /** Only the first call counts. */
  cancel(reason: unknown): void
  /** A signal for one who waits. Each gets its own, because Node takes many listeners of one signal for a leak. */
  signal(): AbortSignal
  /** Lets the outer signal go, which may live much longer. */
  unlink(): void
}

/** A cancellation that also follows an outer signal. */
export function createCancellation(outer: AbortSignal | undefined): Cancellation {
  const controllers: AbortController[] = []
  let cancelled: { readonly reason: unknown } | undefined
  const link = outer === undefined ? undefined : AbortSignal.any([outer])
  const cancel = (reason: unknown) => {
    if (cancelled !== undefined) return
    cancelled = { reason }
    for (const controller of controllers) controller.abort(reason)
  }
  const follow = () => cancel(link?.reason)
  if (link?.aborted === true) follow()
  else link?.addEventListener('abort', follow, { once: true })
  return {
    get isCancelled() {
      return cancelled !== undefined
    },
    cancel,
    signal() {
      const controller = new AbortController()
      if (cancelled === undefined) controllers.push(controller)
      else controller.abort(cancelled.reason)
      return controller.signal
    },
    unlink() {
      link?.removeEventListener('abort', follow)
    },
  }
}
