import type { Clock } from '@tiltyard/core'

/** Times of named pieces of work. */
export interface Spans {
  /** Runs the work and notes how long it took, also when it fails. */
  measure<T>(name: string, work: () => Promise<T>): Promise<T>
  add(name: string, seconds: number): void
  /** What was noted since the last call, as metrics, in seconds. */
  take(): Readonly<Record<string, number>>
}

/**
 * A span seen once is `time/<name>`; seen more often `time/<name>:total`, `:count`, `:mean` and `:max`. 1 s and 3 s give 4, 2, 2 and 3.
 */
export function createSpans(clock: Clock): Spans {
  let noted = new Map<string, number[]>()
  const add = (name: string, seconds: number) => {
    const times = noted.get(name) ?? []
    noted.set(name, times)
    times.push(seconds)
  }
  return {
    add,
    async measure(name, work) {
      const start = clock.now()
      try {
        return await work()
      } finally {
        add(name, (clock.now() - start) / 1000)
      }
    },
    take() {
      const entries = [...noted].flatMap(([name, times]) => summarize(`time/${name}`, times))
      noted = new Map()
      return Object.fromEntries(entries)
    },
  }
}

function summarize(name: string, times: readonly number[]): readonly (readonly [string, number])[] {
  if (times.length === 1) return [[name, times[0]!]]
  const total = times.reduce((sum, time) => sum + time, 0)
  return [
    [`${name}:total`, total],
    [`${name}:count`, times.length],
    [`${name}:mean`, total / times.length],
    [`${name}:max`, times.reduce((most, time) => Math.max(most, time), 0)],
  ]
}

/** How long at least one of some overlapping pieces of work was under way. */
export interface BusyMeter {
  enter(): void
  leave(): void
  /** Busy seconds since the last call. */
  take(): number
}

export function createBusyMeter(clock: Clock): BusyMeter {
  let depth = 0
  let since = 0
  let busy = 0
  const settle = () => {
    const now = clock.now()
    if (depth > 0) busy += now - since
    since = now
  }
  return {
    enter() {
      settle()
      depth += 1
    },
    leave() {
      settle()
      depth -= 1
    },
    take() {
      settle()
      const seconds = busy / 1000
      busy = 0
      return seconds
    },
  }
}

/** Watches how late timers come, which is how long something kept the event loop busy. */
export interface LagMeter {
  /** Milliseconds since the last call: most and mean. */
  take(): { readonly max: number; readonly mean: number }
  stop(): void
}

const LAG_INTERVAL_MS = 50

export function createLagMeter(clock: Clock): LagMeter {
  const over = new AbortController()
  let lags: number[] = []
  const watch = async () => {
    for (;;) {
      const start = clock.now()
      await clock.sleep(LAG_INTERVAL_MS, over.signal)
      lags.push(Math.max(0, clock.now() - start - LAG_INTERVAL_MS))
    }
  }
  watch().catch(() => {})
  return {
    take() {
      const max = lags.reduce((most, lag) => Math.max(most, lag), 0)
      const mean = lags.length === 0 ? 0 : lags.reduce((sum, lag) => sum + lag, 0) / lags.length
      lags = []
      return { max, mean }
    },
    stop: () => over.abort(),
  }
}
