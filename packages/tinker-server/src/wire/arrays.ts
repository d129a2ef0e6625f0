/** Typed arrays as the wire has them: little-endian, anywhere in a body. */

const hostIsLittle = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

export function bytesOf(array: Float32Array | Int32Array | BigInt64Array): Uint8Array {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength)
  return hostIsLittle ? bytes : swapped(bytes, array.BYTES_PER_ELEMENT)
}

export function float32Of(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  return new Float32Array(aligned(bytes, 4))
}

export function int32Of(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  return new Int32Array(aligned(bytes, 4))
}

/** The upper halves of float32. */
export function bfloat16Of(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const halves = new Uint16Array(aligned(bytes, 2))
  return new Float32Array(Uint32Array.from(halves, (half) => half * 0x10000).buffer)
}

/** int64 values that fit 32 bits, as token ids do. @throws RangeError naming the first that doesn't. */
export function idsOf(bytes: Uint8Array): Int32Array<ArrayBuffer> {
  const wide = new BigInt64Array(aligned(bytes, 8))
  return Int32Array.from(wide, (value, index) => {
    const id = Number(value)
    if (id !== id >> 0) throw new RangeError(`value ${index} is ${value}, no token id`)
    return id
  })
}

/** A copy that begins on a boundary, in the machine's order. */
function aligned(bytes: Uint8Array, width: number): ArrayBuffer {
  if (bytes.length % width !== 0)
    throw new RangeError(`${bytes.length} bytes are no whole number of ${width}-byte values`)
  const copy = Uint8Array.from(bytes)
  return (hostIsLittle ? copy : swapped(copy, width)).buffer
}

function swapped(bytes: Uint8Array, width: number): Uint8Array<ArrayBuffer> {
  const copy = Uint8Array.from(bytes)
  for (let at = 0; at < copy.length; at += width) copy.subarray(at, at + width).reverse()
  return copy
}
