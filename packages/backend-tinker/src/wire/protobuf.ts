/**
 * The part of protobuf that the messages of this wire need. A message is written as segments: typed arrays go in as they are and are
 * copied once, into a piece of the body, when the connection takes it.
 */
export interface Segments {
  readonly length: number
  readonly parts: readonly Part[]
}

/** Bytes, or how to make so many when their turn comes. */
type Part = Uint8Array | { readonly length: number; readonly make: () => Uint8Array }

const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder()

export function message(...fields: readonly Segments[]): Segments {
  return {
    length: fields.reduce((sum, field) => sum + field.length, 0),
    parts: fields.flatMap((field) => field.parts),
  }
}

/** A message inside another. */
export function nested(field: number, content: Segments): Segments {
  const head = concat([varint((field << 3) | 2), varint(content.length)])
  return { length: head.length + content.length, parts: [head, ...content.parts] }
}

/** Bytes, written even when empty: a member of a oneof is there or isn't. */
export function bytesField(field: number, bytes: Part): Segments {
  return nested(field, { length: bytes.length, parts: [bytes] })
}

export function stringField(field: number, text: string): Segments {
  return text === '' ? nothing : bytesField(field, utf8.encode(text))
}

/** An integer of at most 53 bits that isn't negative; 0 is the default and isn't written. */
export function integerField(field: number, value: number): Segments {
  return value === 0 ? nothing : single(concat([varint(field << 3), varint(value)]))
}

export function doubleField(field: number, value: number): Segments {
  const bytes = new Uint8Array(9)
  bytes[0] = (field << 3) | 1
  new DataView(bytes.buffer).setFloat64(1, value, true)
  return single(bytes)
}

/** Repeated integers, packed. */
export function packedField(field: number, values: readonly number[]): Segments {
  return values.length === 0 ? nothing : bytesField(field, concat(values.map(varint)))
}

export function mapEntry(field: number, key: string, value: Segments): Segments {
  return nested(field, message(bytesField(1, utf8.encode(key)), value))
}

const nothing: Segments = { length: 0, parts: [] }

function single(bytes: Uint8Array): Segments {
  return { length: bytes.length, parts: [bytes] }
}

function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Uint8Array.from(bytes)
}

/** Longest piece in which a message goes out: some copies of it are in memory, the rest is made as the connection takes it. */
const PIECE_BYTES = 256 * 1024

/** The bytes of a message in order, each piece made when it is asked for. */
export function* piecesOf({ length, parts }: Segments): Generator<Uint8Array<ArrayBuffer>> {
  let left = length
  let piece = Buffer.allocUnsafeSlow(Math.min(left, PIECE_BYTES))
  let at = 0
  for (const part of parts) {
    const bytes = part instanceof Uint8Array ? part : part.make()
    for (let from = 0; from < bytes.length;) {
      const end = Math.min(bytes.length, from + piece.length - at)
      piece.set(bytes.subarray(from, end), at)
      at += end - from
      from = end
      if (at < piece.length) continue
      yield piece
      left -= at
      piece = Buffer.allocUnsafeSlow(Math.min(left, PIECE_BYTES))
      at = 0
    }
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  // From Node's pool, not zeroed first: every byte is written.
  const whole = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** A field as it lies in the bytes. Unknown ones are the caller's to pass over. */
export interface Field {
  readonly number: number
  /** Varint and fixed64 fields. A varint keeps 53 bits. */
  readonly value: number
  /** Fixed64 fields, read as a double. */
  readonly double: number
  /** Length-delimited fields. A view, not a copy. */
  readonly bytes: Uint8Array
}

const none = new Uint8Array()

/** The fields of a message in order. @throws RangeError when it ends in the middle of one. */
export function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const readVarint = () => {
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
    const tag = readVarint()
    const number = Math.floor(tag / 8)
    const kind = tag % 8
    if (kind === 0) {
      const value = readVarint()
      yield { number, value, double: value, bytes: none }
    } else if (kind === 1) {
      const double = view.getFloat64(at, true)
      at += 8
      yield { number, value: double, double, bytes: none }
    } else if (kind === 2) {
      const length = readVarint()
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

/** Varints of a packed field. */
export function packedOf(bytes: Uint8Array): readonly number[] {
  const values: number[] = []
  let value = 0
  let scale = 1
  for (const byte of bytes) {
    value += (byte & 0x7f) * scale
    scale *= 0x80
    if (byte >= 0x80) continue
    values.push(value)
    value = 0
    scale = 1
  }
  return values
}
