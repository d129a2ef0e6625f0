import { DataError } from '../errors.ts'

/**
 * JSON text of a value that may hold typed arrays. An `Int32Array` becomes `{"$i32": base64}`, a `Float32Array` `{"$f32": base64}`,
 * little-endian: three times smaller than lists of numbers and exact. NaN and infinities elsewhere are refused: JSON has none.
 */
export function stringifyRecord(value: unknown): string {
  return JSON.stringify(value, (key, member: unknown) => {
    if (member instanceof Int32Array) return { $i32: toBase64(member) }
    if (member instanceof Float32Array) return { $f32: toBase64(member) }
    if (typeof member === 'number' && !Number.isFinite(member)) {
      throw new DataError(`"${key}" is ${member}, which a record can't hold`)
    }
    return member
  })
}

/** The inverse of `stringifyRecord`. @throws SyntaxError for text that is no JSON. */
export function parseRecord(text: string): unknown {
  return JSON.parse(text, (_, member: unknown) => {
    if (typeof member !== 'object' || member === null) return member
    if ('$i32' in member && typeof member.$i32 === 'string')
      return new Int32Array(fromBase64(member.$i32))
    if ('$f32' in member && typeof member.$f32 === 'string')
      return new Float32Array(fromBase64(member.$f32))
    return member
  })
}

const CHUNK_BYTES = 0x8000

function toBase64(array: Int32Array | Float32Array): string {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    parts.push(String.fromCharCode(...bytes.subarray(at, at + CHUNK_BYTES)))
  }
  return btoa(parts.join(''))
}

function fromBase64(text: string): ArrayBuffer {
  const raw = atob(text)
  const buffer = new ArrayBuffer(raw.length)
  const bytes = new Uint8Array(buffer)
  for (let index = 0; index < raw.length; index += 1) bytes[index] = raw.charCodeAt(index)
  return buffer
}
