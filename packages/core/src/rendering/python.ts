import type { JsonValue } from '../json.ts'

/**
 * A number as Python writes it: integers plain, others in their shortest form, with an exponent of at least two digits below
 * 1e-4 and from 1e16 on. JavaScript has one number for `1` and `1.0`: it is written `1`.
 */
export function pythonNumber(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e16) return String(value)
  if (!Number.isFinite(value))
    return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity'
  const [mantissa, exponentText] = value.toExponential().split('e') as [string, string]
  const exponent = Number(exponentText)
  if (exponent >= -4 && exponent < 16) return fixed(mantissa, exponent)
  const sign = exponent < 0 ? '-' : '+'
  return `${mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Digits without an exponent; JavaScript's own notation switches elsewhere. */
function fixed(mantissa: string, exponent: number): string {
  const negative = mantissa.startsWith('-')
  const digits = mantissa.replace('-', '').replace('.', '')
  const text =
    exponent < 0
      ? `0.${'0'.repeat(-exponent - 1)}${digits}`
      : `${digits.slice(0, exponent + 1)}.${digits.slice(exponent + 1)}`
  return negative ? `-${text}` : text
}

/** A value as Python's `str` writes it: strings as they are, `True`, `None`, lists and objects with quoted strings. */
export function pythonText(value: JsonValue): string {
  return typeof value === 'string' ? value : pythonRepr(value)
}

function pythonRepr(value: JsonValue): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'number') return pythonNumber(value)
  if (typeof value === 'string') return pythonString(value)
  if (Array.isArray(value)) {
    return `[${(value as readonly JsonValue[]).map(pythonRepr).join(', ')}]`
  }
  const members = Object.entries(value as Readonly<Record<string, JsonValue>>).map(
    ([key, member]) => `${pythonString(key)}: ${pythonRepr(member)}`,
  )
  return `{${members.join(', ')}}`
}

/** Single quotes, or double ones when that saves an escape; what isn't printable as an escape. */
function pythonString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const body = text.replaceAll(/[\\'"\p{C}\p{Z}]/gu, (char) => {
    if (char === '\\' || char === quote) return `\\${char}`
    if (char === ' ' || char === "'" || char === '"') return char
    const named = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[char]
    return named ?? codeEscape(char.codePointAt(0)!)
  })
  return quote + body + quote
}

function codeEscape(point: number): string {
  const hex = point.toString(16)
  if (point < 0x100) return `\\x${hex.padStart(2, '0')}`
  return point < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}

/** What Python's `strip` removes. JavaScript's `trim` leaves U+001C–001F and U+0085, and removes U+FEFF. */
const space = '\\t-\\r\\x1C- \\x85\\xA0\\u1680\\u2000-\\u200A\\u2028\\u2029\\u202F\\u205F\\u3000'
const leading = new RegExp(`^[${space}]+`)
const spaceChar = new RegExp(`[${space}]`)

export function isPythonSpace(char: string): boolean {
  return spaceChar.test(char)
}

/** `text.strip()` */
export function pythonTrim(text: string): string {
  return pythonTrimEnd(pythonTrimStart(text))
}

/** `text.lstrip()` */
export function pythonTrimStart(text: string): string {
  return text.replace(leading, '')
}

/** `text.rstrip()`. A loop: a pattern anchored at the end alone costs the square of a run of spaces inside. */
export function pythonTrimEnd(text: string): string {
  let end = text.length
  while (end > 0 && spaceChar.test(text[end - 1]!)) end -= 1
  return text.slice(0, end)
}

/** `text.lstrip('\n')` */
export function trimNewlinesStart(text: string): string {
  let start = 0
  while (text[start] === '\n') start += 1
  return text.slice(start)
}

/** `text.strip('\n')` */
export function trimNewlines(text: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === '\n') end -= 1
  return trimNewlinesStart(text.slice(0, end))
}
