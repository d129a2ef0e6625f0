import { DataError } from '../errors.ts'

/**
 * JSON text of a value that may hold typed arrays. An `Int32Array` becomes `{"$i32": base64}`, a `Float32Array` `{"$f32": base64}`,
 * little-endian: three times smaller than lists of numbers and exact. A key of these names that came from outside gets another
 * `$` in front, so that it reads back as the key that it was.
 * @throws DataError for what JSON has no text for: NaN and infinities outside typed arrays, nesting beyond the stack.
 */
export function stringifyRecord(value: unknown): string {
  try {
    return JSON.stringify(encode(value, '')) ?? 'null'
  } catch (error) {
    if (error instanceof RangeError)
      throw new DataError('the value is nested too deeply for a record', { cause: error })
    throw error
  }
}

/** The inverse of `stringifyRecord`. @throws SyntaxError for text that is no JSON. */
export function parseRecord(text: string): unknown {
  return revive(JSON.parse(text))
}

/**
 * The value as plain JSON: itself, or a copy along the paths that lead to typed arrays and marks. `JSON.stringify` with a replacer
 * takes four times as long on a small episode.
 */
function encode(value: unknown, key: string): unknown {
  if (typeof value === 'object') return value === null ? value : encodeObject(value, key)
  if (typeof value === 'number' ? !Number.isFinite(value) : !isPlain(value))
    throw new DataError(`"${key}" is ${describe(value)}, which a record can't hold`)
  return value
}

function isPlain(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean' || value === undefined
}

function describe(value: unknown): string {
  return typeof value === 'number' ? String(value) : `a ${typeof value}`
}

function encodeObject(value: object, key: string): unknown {
  if (Array.isArray(value)) return encodeArray(value, key)
  if (value instanceof Int32Array) return { $i32: toBase64(value) }
  if (value instanceof Float32Array) return { $f32: toBase64(value) }
  const members = value as Readonly<Record<string, unknown>>
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(members)) {
    const member = encode(members[name], name)
    if (isMark(name)) {
      copy ??= { ...members }
      delete copy[name]
      copy[`$${name}`] = member
    } else if (member !== members[name]) {
      copy ??= { ...members }
      copy[name] = member
    }
  }
  return copy ?? value
}

function encodeArray(items: readonly unknown[], key: string): readonly unknown[] {
  let copy: unknown[] | undefined
  for (let index = 0; index < items.length; index += 1) {
    const item = encode(items[index], key)
    if (item === items[index]) continue
    copy ??= [...items]
    copy[index] = item
  }
  return copy ?? items
}

function revive(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) value[index] = revive(item)
    return value
  }
  const members = value as Record<string, unknown>
  if (typeof members['$i32'] === 'string') return new Int32Array(fromBase64(members['$i32']))
  if (typeof members['$f32'] === 'string') return new Float32Array(fromBase64(members['$f32']))
  for (const name of Object.keys(members)) {
    const member = revive(members[name])
    if (isMark(name)) {
      delete members[name]
      members[name.slice(1)] = member
    } else members[name] = member
  }
  return members
}

/** `$i32` or `$f32`, with any number of `$`. */
function isMark(name: string): boolean {
  return name.charCodeAt(0) === 0x24 && /^\$+[if]32$/.test(name)
}

const CHUNK_BYTES = 0x8000

// Node's Buffer is many times faster; a browser has none.
function toBase64(array: Int32Array | Float32Array): string {
  const { buffer, byteOffset, byteLength } = array
  if (typeof Buffer === 'function')
    return Buffer.from(buffer, byteOffset, byteLength).toString('base64')
  const bytes = new Uint8Array(buffer, byteOffset, byteLength)
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES)))
  }
  return btoa(parts.join(''))
}

function fromBase64(text: string): ArrayBuffer {
  if (typeof Buffer === 'function') return new Uint8Array(Buffer.from(text, 'base64')).buffer
  const raw = atob(text)
  const bytes = new Uint8Array(raw.length)
  for (let index = 0; index < raw.length; index += 1) bytes[index] = raw.charCodeAt(index)
  return bytes.buffer
}
