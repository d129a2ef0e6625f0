import type { Tokenizer } from '@tiltyard/core'

/** Characters shown on either side of a difference. */
const CONTEXT = 48

/** Where two texts part, shown so that white space is seen; undefined when they are equal. */
export function textDifference(expected: string, got: string): string | undefined {
  if (expected === got) return undefined
  let at = 0
  while (expected[at] === got[at]) at += 1
  const shown = (text: string) =>
    JSON.stringify(text.slice(Math.max(0, at - CONTEXT), at + CONTEXT))
  return [
    `texts part at character ${at} (${expected.length} expected, ${got.length} got)`,
    `  expected …${shown(expected)}`,
    `  got      …${shown(got)}`,
  ].join('\n')
}

/** Where two lists of ids part, with the text of each id; undefined when they are equal. */
export function idsDifference(
  expected: ArrayLike<number>,
  got: ArrayLike<number>,
  tokenizer: Tokenizer,
): string | undefined {
  const length = Math.max(expected.length, got.length)
  let at = 0
  while (at < length && expected[at] === got[at]) at += 1
  if (at === length) return undefined
  const shown = (ids: ArrayLike<number>) => {
    const around = Array.from(ids).slice(Math.max(0, at - 4), at + 6)
    return around.map((id) => `${id} ${JSON.stringify(tokenizer.decode([id]))}`).join(' · ')
  }
  return [
    `tokens part at ${at} (${expected.length} expected, ${got.length} got)`,
    `  expected …${shown(expected)}`,
    `  got      …${shown(got)}`,
  ].join('\n')
}

/** Two values as JSON, one under the other; undefined when they are equal. */
export function valueDifference(what: string, expected: unknown, got: unknown): string | undefined {
  const [left, right] = [expected, got].map((value) => JSON.stringify(value))
  if (left === right) return undefined
  return `${what}\n  expected ${left ?? 'nothing'}\n  got      ${right ?? 'nothing'}`
}
