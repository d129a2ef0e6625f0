/** Typed arrays as the wire has them: little-endian, anywhere in a body. */

const hostIsLittle = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

type Wide = Float32Array | Int32Array | BigInt64Array

/** The bytes of an array: a view on little-endian machines. */
export function bytesOf(array: Wide): Uint8Array {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
  return hostIsLittle ? bytes : swapped(bytes, array.BYTES_PER_ELEMENT)
}

/** 32-bit integers as int64. */
export function int64Bytes(array: Int32Array): Uint8Array {
  const words = new Int32Array(2 * array.length)
  const low = hostIsLittle ? 0 : 1
  for (let index = 0; index < array.length; index += 1) {
    const value = array[index]!
    words[2 * index + low] = value
    if (value < 0) words[2 * index + 1 - low] = -1
  }
  const bytes = new Uint8Array(words.buffer)
  return hostIsLittle ? bytes : swapped(bytes, 8)
}

export function float32Of(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  return new Float32Array(aligned(bytes, 4))
}

export function int32Of(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  return new Int32Array(aligned(bytes, 4))
}

export function int64Of(bytes: Uint8Array): BigInt64Array<ArrayBuffer> {
  return new BigInt64Array(aligned(bytes, 8))
}

/** The upper halves of float32. */
export function bfloat16Of(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const halves = new Uint16Array(aligned(bytes, 2))
  return new Float32Array(Uint32Array.from(halves, (half) => half * 0x10000).buffer)
}

/** A copy that begins on a boundary, in the machine's order. */
function aligned(bytes: Uint8Array, width: number): ArrayBuffer {
  if (bytes.length % width !== 0)
    throw new RangeError(`${bytes.length} bytes are no whole number of ${width}-byte values`)
  const copy = new Uint8Array(bytes)
  return (hostIsLittle ? copy : swapped(copy, width)).buffer
}

function swapped(bytes: Uint8Array, width: number): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes)
  for (let at = 0; at < copy.length; at += width) copy.subarray(at, at + width).reverse()
  return copy
}
