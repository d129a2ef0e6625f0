/** The part of the protobuf wire format that an ONNX file needs: messages are concatenated, already encoded fields. */

type Field = Uint8Array

const VARINT = 0
const BYTES = 2
const FIXED32 = 5

export function message(fields: readonly Field[]): Uint8Array {
  const whole = new Uint8Array(fields.reduce((sum, field) => sum + field.length, 0))
  let at = 0
  for (const field of fields) {
    whole.set(field, at)
    at += field.length
  }
  return whole
}

/** An int64, int32 or enum. Negative numbers take ten bytes, as the format wants. */
export function integer(number: number, value: number): Field {
  return Uint8Array.from([
    ...varint(BigInt((number << 3) | VARINT)),
    ...varint(BigInt.asUintN(64, BigInt(value))),
  ])
}

export function float(number: number, value: number): Field {
  const encoded = new Uint8Array(4)
  new DataView(encoded.buffer).setFloat32(0, value, true)
  return message([Uint8Array.from(varint(BigInt((number << 3) | FIXED32))), encoded])
}

/** A nested message, a string or raw bytes. */
export function bytes(number: number, value: Uint8Array | string): Field {
  const content = typeof value === 'string' ? new TextEncoder().encode(value) : value
  const head = [...varint(BigInt((number << 3) | BYTES)), ...varint(BigInt(content.length))]
  return message([Uint8Array.from(head), content])
}

function varint(value: bigint): number[] {
  const out: number[] = []
  let rest = value
  while (rest > 0x7fn) {
    out.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  out.push(Number(rest))
  return out
}
