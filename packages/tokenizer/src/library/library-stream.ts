import type { TokenStream } from '@tiltyard/core'

/**
 * A stream over a decoder that only takes whole lists. What a token adds can depend on the one before (a space, the rest of a
 * character), so each step decodes from the last cut on, and a cut is made where the text is whole.
 */
export function libraryStream(
  decode: (ids: readonly number[]) => string,
  isKnown: (id: number) => boolean,
): TokenStream {
  let ids: number[] = []
  /** Ids and text that were given out already; they stay as the context of the next. */
  let given = 0
  let text = ''

  const advance = (last: boolean) => {
    const whole = decode(ids)
    if (!last && whole.endsWith('\uFFFD')) return ''
    const added = whole.slice(text.length)
    ids = ids.slice(given)
    given = ids.length
    text = decode(ids)
    return added
  }

  return {
    push(more) {
      let added = ''
      for (let at = 0; at < more.length; at += 1) {
        if (!isKnown(more[at]!)) continue
        ids.push(more[at]!)
        added += advance(false)
      }
      return added
    },
    end: () => advance(true),
  }
}
