/** Watches one reply for stop tokens and stop strings. */
export interface StopWatch {
  /** Whether the reply ends with this token. */
  ends(id: number): boolean
}

export interface StopRule {
  readonly tokens: readonly number[]
  readonly strings: readonly string[]
}

/** `bytesOf` gives a token's bytes; only stop strings need it. */
export function stopWatch(
  { tokens, strings }: StopRule,
  bytesOf: (id: number) => Uint8Array,
): StopWatch {
  const ids = new Set(tokens)
  const wanted = strings
    .filter((text) => text !== '')
    .map((text) => byteText(new TextEncoder().encode(text)))
  const longest = Math.max(0, ...wanted.map(({ length }) => length))
  let recent = ''
  return {
    ends(id) {
      if (ids.has(id)) return true
      if (longest === 0) return false
      recent += byteText(bytesOf(id))
      if (wanted.some((text) => recent.includes(text))) return true
      recent = recent.slice(Math.max(0, recent.length - longest + 1))
      return false
    },
  }
}

/** One character per byte, so that a string's end inside a token or a character is found too. */
function byteText(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}
