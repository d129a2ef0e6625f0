export const CALL_OPEN = '<tool_call>'
export const CALL_CLOSE = '</tool_call>'
export const FUNCTION_OPEN = '<function='
export const FUNCTION_CLOSE = '</function>'
export const PARAMETER_OPEN = '<parameter='
export const PARAMETER_CLOSE = '</parameter>'
export const THINK_OPEN = '<think>'
export const THINK_CLOSE = '</think>'

/** The tags that may follow a closed value. */
export const callTags = [
  CALL_OPEN,
  CALL_CLOSE,
  FUNCTION_OPEN,
  FUNCTION_CLOSE,
  PARAMETER_OPEN,
  PARAMETER_CLOSE,
] as const

/**
 * Which of `tags` stands at a place: one of them, `undefined` for none, or `'more'` while what is there may still become one.
 * `final` says that no text follows.
 */
export function tagAt<Tag extends string>(
  text: string,
  at: number,
  tags: readonly Tag[],
  final: boolean,
): Tag | 'more' | undefined {
  const found = tags.find((tag) => text.startsWith(tag, at))
  if (found !== undefined || final) return found
  const rest = text.slice(at, at + 16)
  return text.length - at < 16 && tags.some((tag) => tag.startsWith(rest)) ? 'more' : undefined
}

/** The first place from `at` on that holds no white space. */
export function skipSpace(text: string, at: number): number {
  let end = at
  while (end < text.length && /\s/.test(text[end]!)) end += 1
  return end
}

/** Where the earliest of several texts begins; −1 for none. */
export function earliest(text: string, from: number, wanted: readonly string[]): number {
  let first = -1
  for (const part of wanted) {
    const at = text.indexOf(part, from)
    if (at !== -1 && (first === -1 || at < first)) first = at
  }
  return first
}

/** How much of a text no later text can make part of one of `tags`. */
export function settledLength(text: string, tags: readonly string[]): number {
  const at = text.lastIndexOf('<')
  if (at === -1) return text.length
  const rest = text.slice(at)
  return tags.some((tag) => tag.startsWith(rest)) ? at : text.length
}
