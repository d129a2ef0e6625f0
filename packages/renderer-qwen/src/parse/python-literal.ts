import type { JsonValue } from '@tiltyard/core'
import { MAX_JSON_DEPTH } from '@tiltyard/core/rendering'

/**
 * A Python literal of strings, numbers, booleans, None, lists, tuples and dicts, as JSON. Read, never evaluated; undefined for
 * anything else.
 */
export function parsePythonLiteral(text: string): JsonValue | undefined {
  let at = 0

  const skipSpace = () => {
    while (/\s/.test(text[at] ?? '')) at += 1
  }
  const take = (token: string) => {
    skipSpace()
    if (!text.startsWith(token, at)) return false
    at += token.length
    return true
  }
  const pattern = (expression: RegExp) => {
    skipSpace()
    expression.lastIndex = at
    const match = expression.exec(text)
    if (match !== null) at += match[0].length
    return match?.[0]
  }

  const list = (close: string, depth: number): JsonValue[] => {
    const items: JsonValue[] = []
    while (!take(close)) {
      items.push(value(depth + 1))
      if (!take(',')) {
        if (!take(close)) throw unreadable
        break
      }
    }
    return items
  }

  const dict = (depth: number): JsonValue => {
    const members: [string, JsonValue][] = []
    while (!take('}')) {
      const key = value(depth + 1)
      if (typeof key === 'object' || !take(':')) throw unreadable
      members.push([String(key), value(depth + 1)])
      if (!take(',')) {
        if (!take('}')) throw unreadable
        break
      }
    }
    return Object.fromEntries(members)
  }

  const value = (depth: number): JsonValue => {
    if (depth > MAX_JSON_DEPTH) throw unreadable
    if (take('{')) return dict(depth)
    if (take('[')) return list(']', depth)
    if (take('(')) {
      const start = at
      const items = list(')', depth)
      // Parentheses around one value without a comma are no tuple.
      return items.length === 1 && !/,\s*\)$/.test(text.slice(start, at)) ? items[0]! : items
    }
    const word = pattern(/(?:True|False|None|true|false|null)\b/y)
    if (word !== undefined) return wordValues[word]!
    const string = pattern(/'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y)
    if (string !== undefined) return unescaped(string.slice(1, -1))
    const number = pattern(/[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])/y)
    if (number === undefined) throw unreadable
    return exactNumber(number)
  }

  try {
    const result = value(0)
    skipSpace()
    return at === text.length ? result : undefined
  } catch (error) {
    if (error === unreadable) return undefined
    throw error
  }
}

const unreadable = new Error('no Python literal')

const wordValues: Readonly<Record<string, JsonValue>> = {
  True: true,
  true: true,
  False: false,
  false: false,
  None: null,
  null: null,
}

/** Beyond what a double holds exactly an integer stays text, as in JSON. */
function exactNumber(text: string): JsonValue {
  const value = Number(text)
  const exact = /^[+-]?\d+$/.test(text) ? Number.isSafeInteger(value) : Number.isFinite(value)
  return exact ? value : text
}

function unescaped(body: string): string {
  return body.replaceAll(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([^]))/g,
    (whole, x?: string, u?: string, U?: string, char?: string) => {
      const code = x ?? u ?? U
      if (code !== undefined) {
        const point = Number.parseInt(code, 16)
        return point > 0x10ffff ? whole : String.fromCodePoint(point)
      }
      const known: Readonly<Record<string, string>> = {
        n: '\n',
        r: '\r',
        t: '\t',
        b: '\b',
        f: '\f',
        v: '\v',
        a: '\u0007',
        '0': '\0',
        '\n': '',
        '\\': '\\',
        "'": "'",
        '"': '"',
      }
      return known[char!] ?? whole
    },
  )
}
