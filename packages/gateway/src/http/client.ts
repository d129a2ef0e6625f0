/** Who waits for an answer, and may go away before all of it is there. */
export interface Client {
  readonly gone: boolean
  /** Calls back when the client goes; what it gives calls that off. */
  onGone(listener: () => void): () => void
}

/** The caller of a `fetch`, who goes by its signal. */
export function caller(signal: AbortSignal): Client {
  return {
    get gone() {
      return signal.aborted
    },
    onGone(listener) {
      signal.addEventListener('abort', listener, { once: true })
      return () => signal.removeEventListener('abort', listener)
    },
  }
}
