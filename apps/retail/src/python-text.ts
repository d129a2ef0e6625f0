/**
 * Python's way to round and write numbers and JSON. The benchmark's tools answer in it, so what a model reads depends on it.
 */
import type { JsonValue } from '@tiltyard/core'
import { pythonNumber } from '@tiltyard/core/rendering'

/** A float as Python's `repr` writes it: with `.0` when whole. */
export function pythonFloat(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  const text = pythonNumber(value)
  return Number.isInteger(value) && !text.includes('e') ? `${text}.0` : text
}

/** `round(value, 2)`: right for the exact binary value, ties to the even digit. `toFixed` takes ties away from zero. */
export function roundCents(value: number): number {
  const isTie = Number.isInteger(value * 8) && !Number.isInteger(value * 4)
  if (!isTie || Math.abs(value) >= 1e13)
    return Math.abs(value) < 1e21 ? Number(value.toFixed(2)) : value
  const below = Math.floor(value * 100)
  return Number(`${below % 2 === 0 ? below : below + 1}e-2`)
}

/** Keys whose numbers are floats in the benchmark's store. */
const floatKeys: ReadonlySet<string> = new Set([
  'price',
  'amount',
  'balance',
  'exchange_price_difference',
])

/** `json.dumps(value)` of a part of the store: keys in their order or sorted, non-ASCII escaped. */
export function pythonJson(value: JsonValue, { sorted = false } = {}): string {
  const print = (member: JsonValue, key: string): string => {
    if (typeof member === 'string') return pythonString(member)
    if (typeof member === 'number')
      return floatKeys.has(key) ? pythonFloat(member) : pythonNumber(member)
    if (typeof member !== 'object' || member === null) return String(member)
    if (isList(member)) return `[${member.map((entry) => print(entry, '')).join(', ')}]`
    const keys = Object.keys(member)
    if (sorted) keys.sort()
    return `{${keys.map((name) => `${pythonString(name)}: ${print(member[name]!, name)}`).join(', ')}}`
  }
  return print(value, '')
}

function pythonString(text: string): string {
  const json = JSON.stringify(text)
  // oxlint-disable-next-line no-control-regex -- everything outside ASCII
  if (/^[\x00-\x7f]*$/.test(json)) return json
  return json.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function isList(value: object): value is readonly JsonValue[] {
  return Array.isArray(value)
}
