/** Keeps the last few values that were loaded, each for a short while: pages of one thing ask for it again and again. */
export interface Recent<Value> {
  /** The value of the key: the one at hand, the one that is being loaded, or a new one. A failure isn't kept. */
  get(key: string, load: () => Promise<Value>): Promise<Value>
}

export interface RecentOptions {
  readonly most: number
  readonly forMs: number
  /** Milliseconds, from any beginning. */
  readonly now: () => number
}

export function createRecent<Value>({ most, forMs, now }: RecentOptions): Recent<Value> {
  const entries = new Map<string, { readonly value: Promise<Value>; until: number }>()
  return {
    get(key, load) {
      const found = entries.get(key)
      if (found !== undefined && now() < found.until) return found.value
      const value = load()
      const entry = { value, until: Number.POSITIVE_INFINITY }
      entries.delete(key)
      entries.set(key, entry)
      for (const oldest of entries.keys()) {
        if (entries.size <= most) break
        entries.delete(oldest)
      }
      // The while begins when it is there, however long the store took.
      value.then(
        () => (entry.until = now() + forMs),
        () => entries.get(key) === entry && entries.delete(key),
      )
      return value
    },
  }
}
