/** The part of protobuf that this wire needs: reading requests, writing results. */

const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder()
const none = new Uint8Array()

/** A field as it lies in the bytes. Unknown ones are the caller's to pass over. */
export interface Field {
  readonly number: number
  /** Varint fields; 53 bits are kept. */
  readonly value: number
  /** Fixed64 fields, read as a double. */
  readonly double: number
  /** Length-delimited fields. A view, not a copy. */
  readonly bytes: Uint8Array
}

/** The fields of a message in order. @throws RangeError when it ends in the middle of one. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const varint = () => {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = view.getUint8(at)
      at += 1
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 0x80
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const number = Math.floor(tag / 8)
    const kind = tag % 8
    if (kind === 0) {
      yield { number, value: varint(), double: 0, bytes: none }
    } else if (kind === 1) {
      yield { number, value: 0, double: view.getFloat64(at, true), bytes: none }
      at += 8
    } else if (kind === 2) {
      const length = varint()
      if (at + length > bytes.length) throw new RangeError('a field reaches beyond its message')
      yield { number, value: 0, double: 0, bytes: bytes.subarray(at, at + length) }
      at += length
    } else if (kind === 5) {
      at += 4
    } else throw new RangeError(`no field has wire type ${kind}`)
  }
}

export function textOf(bytes: Uint8Array): string {
  return fromUtf8.decode(bytes)
}

/** An entry of a map: its key, and the field that holds its value. */
export function entryOf(bytes: Uint8Array): { readonly key: string; readonly value?: Field } {
  let key = ''
  let value: Field | undefined
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) key = textOf(field.bytes)
    if (field.number === 2) value = field
  }
  return value === undefined ? { key } : { key, value }
}

/** Varints, of a field that is packed or came one by one. */
export function packedOf(field: Field): readonly number[] {
  if (field.bytes.length === 0) return [field.value]
  const values: number[] = []
  let value = 0
  let scale = 1
  for (const byte of field.bytes) {
    value += (byte & 0x7f) * scale
    scale *= 0x80
    if (byte >= 0x80) continue
    values.push(value)
    value = 0
    scale = 1
  }
  return values
}

export function message(...fields: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(fields.reduce((sum, field) => sum + field.length, 0))
  let at = 0
  for (const field of fields) {
    whole.set(field, at)
    at += field.length
  }
  return whole
}

export function bytesField(field: number, bytes: Uint8Array): Uint8Array {
  return message(varintBytes((field << 3) | 2), varintBytes(bytes.length), bytes)
}

export function stringField(field: number, text: string): Uint8Array {
  return text === '' ? none : bytesField(field, utf8.encode(text))
}

export function integerField(field: number, value: number): Uint8Array {
  return value === 0 ? none : message(varintBytes(field << 3), varintBytes(value))
}

export function doubleField(field: number, value: number): Uint8Array {
  const bytes = new Uint8Array(9)
  bytes[0] = (field << 3) | 1
  new DataView(bytes.buffer).setFloat64(1, value, true)
  return bytes
}

export function packedField(field: number, values: readonly number[]): Uint8Array {
  return values.length === 0 ? none : bytesField(field, message(...values.map(varintBytes)))
}

function varintBytes(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Uint8Array.from(bytes)
}
