import { DataError } from '../errors.ts'

/**
 * JSON text of a value that may hold typed arrays. An `Int32Array` becomes `{"$i32": base64}`, a `Float32Array` `{"$f32": base64}`,
 * little-endian: three times smaller than lists of numbers and exact. A key of these names that came from outside gets another
 * `$` in front, so that it reads back as the key that it was.
 * @throws DataError for what JSON has no text for: NaN and infinities outside typed arrays, nesting beyond the stack.
 */
export function stringifyRecord(value: unknown): string {
  try {
    return write(value, '') ?? 'null'
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

/** A writer of our own: `JSON.stringify` with a replacer takes three times as long on a small episode. Undefined is left out. */
function write(value: unknown, key: string): string | undefined {
  if (value === undefined) return undefined
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'object') return writeObject(value, key)
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return String(value)
    throw new DataError(`"${key}" is ${value}, which a record can't hold`)
  }
  throw new DataError(`"${key}" is a ${typeof value}, which a record can't hold`)
}

function writeObject(value: object, key: string): string {
  if (Array.isArray(value)) {
    return `[${value.map((item: unknown) => write(item, key) ?? 'null').join(',')}]`
  }
  if (value instanceof Int32Array) return `{"$i32":"${toBase64(value)}"}`
  if (value instanceof Float32Array) return `{"$f32":"${toBase64(value)}"}`
  let members = ''
  for (const name of Object.keys(value)) {
    const text = write((value as Readonly<Record<string, unknown>>)[name], name)
    if (text === undefined) continue
    const written = isMark(name) ? `$${name}` : name
    members += `${members === '' ? '' : ','}${JSON.stringify(written)}:${text}`
  }
  return `{${members}}`
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
