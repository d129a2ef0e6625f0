import { UnsupportedError, type PromptChunk } from '@tiltyard/core'

import type { StreamedBody } from '../transport.ts'
import { bfloat16Of, bytesOf, float32Of, int32Of, int64Bytes, int64Of } from './arrays.ts'
import {
  bytesField,
  doubleField,
  fieldsOf,
  integerField,
  mapEntry,
  message,
  nested,
  packedField,
  packedOf,
  piecesOf,
  stringField,
  textOf,
  type Segments,
} from './protobuf.ts'
import type { WireDatum, WireLoss, WireTensor } from './training-data.ts'

export interface ForwardBackwardRequest {
  readonly modelId: string
  readonly seqId: number
  readonly data: readonly WireDatum[]
  readonly loss: WireLoss
  readonly forwardOnly: boolean
}

const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const

/** Message `ForwardBackwardRequest` of package `tinker_public`, in pieces made from the data's own arrays as they are sent. */
export function encodeForwardBackward(request: ForwardBackwardRequest): StreamedBody {
  const config = Object.entries(request.loss.config ?? {})
  const whole = message(
    stringField(1, request.modelId),
    integerField(2, request.seqId),
    ...request.data.map((datum) => nested(3, encodeDatum(datum))),
    stringField(4, request.loss.name),
    ...config.map(([key, value]) => mapEntry(5, key, doubleField(2, value))),
    integerField(6, request.forwardOnly ? 1 : 0),
  )
  return { length: whole.length, pieces: () => piecesOf(whole) }
}

function encodeDatum({ input, lossInputs }: WireDatum): Segments {
  return message(
    ...input.map((chunk) => nested(1, encodeChunk(chunk))),
    ...Object.entries(lossInputs).map(([name, tensor]) =>
      mapEntry(2, name, nested(2, encodeTensor(tensor))),
    ),
  )
}

function encodeChunk(chunk: PromptChunk): Segments {
  if (chunk.type === 'tokens') return nested(1, bytesField(1, bytesOf(chunk.ids)))
  return nested(
    2,
    message(bytesField(1, chunk.data), stringField(2, chunk.format), integerField(3, chunk.tokens)),
  )
}

function encodeTensor({ data, shape = [data.length] }: WireTensor): Segments {
  const bytes =
    data instanceof Int32Array
      ? { length: 8 * data.length, make: () => int64Bytes(data) }
      : bytesOf(data)
  return message(
    bytesField(1, bytes),
    integerField(3, data instanceof Float32Array ? dtypes.float32 : dtypes.int64),
    packedField(4, shape),
  )
}

/** Values of one datum under one name. */
export interface OutputTensor {
  readonly data: Float32Array | BigInt64Array
  readonly shape: readonly number[]
}

export interface ForwardBackwardOutput {
  /** One per datum, in order. */
  readonly outputs: readonly Readonly<Record<string, OutputTensor>>[]
  /** By `name:reduction`. */
  readonly metrics: Readonly<Record<string, number>>
}

interface BatchedTensor {
  readonly items: readonly OutputTensor[]
}

/** Message `ForwardBackwardOutput`. */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const outputs: Record<string, OutputTensor>[] = []
  const metrics: Record<string, number> = {}
  for (const field of fieldsOf(bytes)) {
    if (field.number === 2) outputs.push(...decodeRecord(field.bytes))
    if (field.number === 3) {
      const { key, value } = decodeEntry(field.bytes, (it) => it.double)
      metrics[key] = value ?? 0
    }
  }
  return { outputs, metrics }
}

function decodeRecord(bytes: Uint8Array): readonly Record<string, OutputTensor>[] {
  const named: (readonly [string, BatchedTensor])[] = []
  let count = 0
  for (const field of fieldsOf(bytes)) {
    if (field.number === 2) {
      const { key, value } = decodeEntry(field.bytes, (it) => decodeBatched(it.bytes))
      if (value !== undefined) named.push([key, value])
    }
    if (field.number === 3) count = field.value
  }
  const data = count === 0 ? (named[0]?.[1].items.length ?? 0) : count
  return Array.from({ length: data }, (_, index) =>
    Object.fromEntries(
      named.flatMap(([key, { items }]) =>
        items[index] === undefined ? [] : [[key, items[index]]],
      ),
    ),
  )
}

function decodeBatched(bytes: Uint8Array): BatchedTensor {
  let data: Uint8Array = new Uint8Array()
  let offsets = new BigInt64Array()
  let dtype = 0
  let trailing: readonly number[] = []
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) data = field.bytes
    if (field.number === 2) offsets = int64Of(field.bytes)
    if (field.number === 3) dtype = field.value
    if (field.number === 4) trailing = packedOf(field.bytes)
  }
  const row = trailing.reduce((product, size) => product * size, 1)
  const items = Array.from({ length: Math.max(0, offsets.length - 1) }, (_, index) => {
    const values = decodeValues(
      data.subarray(Number(offsets[index]), Number(offsets[index + 1])),
      dtype,
    )
    return { data: values, shape: [row === 0 ? 0 : values.length / row, ...trailing] }
  })
  return { items }
}

function decodeValues(bytes: Uint8Array, dtype: number): Float32Array | BigInt64Array {
  if (dtype === dtypes.float32) return float32Of(bytes)
  if (dtype === dtypes.bfloat16) return bfloat16Of(bytes)
  if (dtype === dtypes.int64) return int64Of(bytes)
  if (dtype === dtypes.int32) return BigInt64Array.from(int32Of(bytes), BigInt)
  throw new UnsupportedError(`the service answered with values of unknown type ${dtype}`)
}

function decodeEntry<T>(
  bytes: Uint8Array,
  read: (field: { readonly bytes: Uint8Array; readonly double: number }) => T,
): { readonly key: string; readonly value: T | undefined } {
  let key = ''
  let value: T | undefined
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) key = textOf(field.bytes)
    if (field.number === 2) value = read(field)
  }
  return { key, value }
}

/** The same as JSON, which services before 0.18 of the protocol answer with. */
export function forwardBackwardOutputOfJson(value: {
  readonly loss_fn_outputs?: readonly Readonly<
    Record<
      string,
      {
        readonly data: readonly number[]
        readonly dtype?: string
        readonly shape?: readonly number[] | null
      }
    >
  >[]
  readonly metrics?: Readonly<Record<string, number>>
}): ForwardBackwardOutput {
  const outputs = (value.loss_fn_outputs ?? []).map((output) =>
    Object.fromEntries(
      Object.entries(output).map(([name, { data, dtype, shape }]) => [
        name,
        {
          data: dtype === 'int64' ? BigInt64Array.from(data, BigInt) : Float32Array.from(data),
          shape: shape ?? [data.length],
        },
      ]),
    ),
  )
  return { outputs, metrics: value.metrics ?? {} }
}
