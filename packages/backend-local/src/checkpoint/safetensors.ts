import { ConfigError } from '@tiltyard/core'

/** A float32 tensor with its sizes. */
export interface StoredTensor {
  readonly shape: readonly number[]
  readonly data: Float32Array
}

const LENGTH_BYTES = 8
/** No header of ours comes near it; a larger one is damage, not memory to be asked for. */
const MAX_HEADER_BYTES = 64 * 1024 * 1024

interface HeaderEntry {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly data_offsets: readonly [number, number]
}

/** The bytes of a safetensors file: the header's length, the header as JSON, then the tensors, little-endian, in order. */
export function encodeSafetensors(tensors: ReadonlyMap<string, StoredTensor>): Uint8Array {
  let offset = 0
  const entries: Record<string, HeaderEntry> = {}
  for (const [name, { shape, data }] of tensors) {
    entries[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + data.byteLength] }
    offset += data.byteLength
  }
  const json = new TextEncoder().encode(JSON.stringify(entries))
  // Tensors begin at a multiple of 8, as readers that map the file want it.
  const headerBytes = Math.ceil(json.length / LENGTH_BYTES) * LENGTH_BYTES
  const bytes = new Uint8Array(LENGTH_BYTES + headerBytes + offset)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerBytes), true)
  bytes.fill(0x20, LENGTH_BYTES, LENGTH_BYTES + headerBytes)
  bytes.set(json, LENGTH_BYTES)
  let at = LENGTH_BYTES + headerBytes
  for (const { data } of tensors.values()) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at)
    at += data.byteLength
  }
  return bytes
}

/** @throws ConfigError naming the file and what is wrong with it. */
export function decodeSafetensors(
  file: string,
  bytes: Uint8Array,
): ReadonlyMap<string, StoredTensor> {
  const fail = (message: string): never => {
    throw new ConfigError('checkpoint', [{ at: file, message }])
  }
  if (bytes.length < LENGTH_BYTES)
    return fail(`it has ${bytes.length} bytes, too few for a safetensors file`)
  const headerBytes = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  const start = LENGTH_BYTES + headerBytes
  if (headerBytes > MAX_HEADER_BYTES || start > bytes.length)
    return fail(`its header is longer than the file; it is cut or no safetensors file`)
  const tensors = new Map<string, StoredTensor>()
  for (const [name, entry] of Object.entries(headerOf(bytes.subarray(LENGTH_BYTES, start), fail))) {
    if (name === '__metadata__') continue
    const {
      dtype,
      shape,
      data_offsets: [from, to],
    } = entry
    if (dtype !== 'F32') return fail(`tensor ${name} is ${dtype}; only F32 is read`)
    const elements = shape.reduce((product, size) => product * size, 1)
    if (to - from !== 4 * elements || start + to > bytes.length) {
      return fail(
        `tensor ${name} needs ${4 * elements} bytes at ${start + from}, the file has ${bytes.length}; it is cut or damaged`,
      )
    }
    tensors.set(name, {
      shape,
      data: new Float32Array(Uint8Array.from(bytes.subarray(start + from, start + to)).buffer),
    })
  }
  return tensors
}

function headerOf(
  bytes: Uint8Array,
  fail: (message: string) => never,
): Record<string, HeaderEntry> {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Record<string, HeaderEntry>
  } catch {
    return fail('its header is no JSON; it is damaged or no safetensors file')
  }
}
