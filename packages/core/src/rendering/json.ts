import type { JsonValue } from '../json.ts'
import { pythonNumber } from './python.ts'

/** JSON deeper than this is refused: what is read here is printed, checked and stored by recursive code. */
export const MAX_JSON_DEPTH = 200

/**
 * JSON as chat templates print it (`tojson`): `, ` and `: ` between, keys in their order, non-ASCII and `< > & '` as they are,
 * numbers as Python writes them.
 */
export function printJson(value: JsonValue): string {
  if (typeof value === 'number') return pythonNumber(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (isList(value)) return `[${value.map(printJson).join(', ')}]`
  const members = Object.entries(value).map(([key, member]) => {
    return `${JSON.stringify(key)}: ${printJson(member)}`
  })
  return `{${members.join(', ')}}`
}

/**
 * Reads JSON without losing digits: an integer beyond ±(2^53 − 1), or a number too large for a double, becomes the text that was
 * written.
 * @throws SyntaxError for text that is no JSON, or nests deeper than `MAX_JSON_DEPTH`.
 */
export function parseExactJson(text: string): JsonValue {
  const colon = /\s*:/y
  const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
  let exact = ''
  let copied = 0
  let depth = 0
  for (let at = 0; at < text.length;) {
    const char = text[at]!
    if (char === '"') {
      at = stringEnd(text, at)
      continue
    }
    number.lastIndex = at
    const token = number.exec(text)?.[0]
    if (token === undefined) {
      if (char === '[' || char === '{') depth += 1
      else if (char === ']' || char === '}') depth -= 1
      if (depth > MAX_JSON_DEPTH) {
        throw new SyntaxError(`JSON nests deeper than ${MAX_JSON_DEPTH} levels`)
      }
      at += 1
      continue
    }
    const end = at + token.length
    colon.lastIndex = end
    // A number is no key; quoting it would make it one.
    if (!isExact(token) && !colon.test(text)) {
      exact += `${text.slice(copied, at)}"${token}"`
      copied = end
    }
    at = end
  }
  return JSON.parse(exact + text.slice(copied)) as JsonValue
}

/** The place after a string that opens at `start`. */
function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
}

function isExact(token: string): boolean {
  const value = Number(token)
  return /^-?\d+$/.test(token) ? Number.isSafeInteger(value) : Number.isFinite(value)
}

function isList(value: object): value is readonly JsonValue[] {
  return Array.isArray(value)
}
