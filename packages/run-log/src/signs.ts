export interface SignsOptions {
  readonly give: (signal: AbortSignal) => Promise<void>
  readonly everyMs: number
  readonly onFailure: (error: unknown) => void
}

export interface Signs {
  /** Nothing is under way when it resolves. */
  stop(): Promise<void>
}

/** Gives signs of life, one at a time, until it is stopped. They keep no process alive. */
export function createSigns({ give, everyMs, onFailure }: SignsOptions): Signs {
  const stopped = new AbortController()
  let underWay: Promise<void> | undefined
  const sign = () => {
    underWay ??= give(stopped.signal)
      .catch((error: unknown) => {
        if (!stopped.signal.aborted) onFailure(error)
      })
      .finally(() => {
        underWay = undefined
      })
  }
  sign()
  const timer = setInterval(sign, everyMs)
  timer.unref()
  return {
    async stop() {
      clearInterval(timer)
      stopped.abort()
      await underWay
    },
  }
}
