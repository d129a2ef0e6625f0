/**
 * What a wait needs of an AbortSignal, which is one. Rollout's own cost next to nothing to make, and any number of waits may listen
 * to one: Node takes many listeners of one AbortSignal for a leak.
 */
export interface CancelSignal {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options: { readonly once: true }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** Calls off what belongs together: a group, a batch. */
export interface Cancellation {
  readonly signal: CancelSignal
  /** Only the first call counts. */
  cancel(reason: unknown): void
  /** Lets the outer signal go, which may live much longer. */
  unlink(): void
}

/** As `throwIfAborted` of an AbortSignal. */
export function throwIfCancelled(signal: CancelSignal | undefined): void {
  if (signal?.aborted === true) throw signal.reason
}

/** A cancellation that also follows an outer signal. */
export function createCancellation(outer: CancelSignal | undefined): Cancellation {
  const listeners = new Set<() => void>()
  let cancelled: { readonly reason: unknown } | undefined
  const cancel = (reason: unknown) => {
    if (cancelled !== undefined) return
    cancelled = { reason }
    for (const listener of listeners) listener()
    listeners.clear()
  }
  // Of a signal from outside, one that many share, each gets its own.
  const link = outer instanceof AbortSignal ? AbortSignal.any([outer]) : outer
  const follow = () => cancel(link?.reason)
  if (link?.aborted === true) follow()
  else link?.addEventListener('abort', follow, { once: true })
  return {
    signal: {
      get aborted() {
        return cancelled !== undefined
      },
      get reason() {
        return cancelled?.reason
      },
      addEventListener(_, listener) {
        listeners.add(listener)
      },
      removeEventListener(_, listener) {
        listeners.delete(listener)
      },
    },
    cancel,
    unlink() {
      link?.removeEventListener('abort', follow)
    },
  }
}
