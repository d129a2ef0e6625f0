import { DataError, type PromptChunk } from '@tiltyard/core'

import { bfloat16Of, float32Of, idsOf, int32Of } from './arrays.ts'
import { entryOf, fieldsOf, packedOf, textOf } from './protobuf.ts'

/** A dense array with its shape; a sparse one is filled up when it is read. */
export interface Tensor {
  readonly data: Float32Array | Int32Array
  readonly shape: readonly number[]
}

export interface WireDatum {
  readonly input: readonly PromptChunk[]
  readonly inputs: ReadonlyMap<string, Tensor>
}

/** A forward, or a forward and backward, as it came: by protobuf, or by the JSON of clients before 0.25. */
export interface TrainingRequest {
  readonly modelId: string
  readonly seqId: number | undefined
  readonly data: readonly WireDatum[]
  readonly loss: string
  readonly config: ReadonlyMap<string, number>
  readonly forwardOnly: boolean
}

/** Dense elements that one sparse tensor may have: its shape is the client's word alone. */
const MAX_DENSE = 64 * 1024 * 1024

const FLOAT32 = 1
const INT64 = 2
const INT32 = 3
const BFLOAT16 = 4

/** Message `ForwardBackwardRequest` of package `tinker_public`. Fields that newer clients add are passed over. */
export function decodeTrainingRequest(bytes: Uint8Array): TrainingRequest {
  const data: WireDatum[] = []
  const config = new Map<string, number>()
  let modelId = ''
  let seqId: number | undefined
  let loss = ''
  let forwardOnly = false
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) modelId = textOf(field.bytes)
    if (field.number === 2) seqId = field.value
    if (field.number === 3) data.push(decodeDatum(field.bytes, data.length))
    if (field.number === 4) loss = textOf(field.bytes)
    if (field.number === 5) {
      const { key, value } = entryOf(field.bytes)
      config.set(key, value?.double ?? 0)
    }
    if (field.number === 6) forwardOnly = field.value !== 0
    if (field.number === 7) {
      const { key, value } = entryOf(field.bytes)
      const number = value === undefined ? undefined : numberOf(value.bytes)
      if (number === undefined) throw new DataError(`setting ${key} of the loss is no number`)
      config.set(key, number)
    }
  }
  return { modelId, seqId, data, loss, config, forwardOnly }
}

/** The number of a `LossConfigValue`, which may be text too. */
function numberOf(bytes: Uint8Array): number | undefined {
  let number: number | undefined = 0
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) number = field.double
    if (field.number === 2) number = undefined
  }
  return number
}

function decodeDatum(bytes: Uint8Array, index: number): WireDatum {
  const input: PromptChunk[] = []
  const inputs = new Map<string, Tensor>()
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) input.push(decodeChunk(field.bytes, index))
    if (field.number === 2) {
      const { key, value } = entryOf(field.bytes)
      if (value !== undefined) inputs.set(key, decodeTensor(value.bytes, `datum ${index}: ${key}`))
    }
  }
  return { input, inputs }
}

function decodeChunk(bytes: Uint8Array, index: number): PromptChunk {
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) {
      for (const { number, bytes: tokens } of fieldsOf(field.bytes))
        if (number === 1) return { type: 'tokens', ids: int32Of(tokens) }
      return { type: 'tokens', ids: new Int32Array() }
    }
    if (field.number === 2) return decodeImage(field.bytes, index)
    if (field.number === 3) throw new DataError(`datum ${index}: this server takes no audio`)
  }
  throw new DataError(`datum ${index}: a chunk is of no known kind`)
}

function decodeImage(bytes: Uint8Array, index: number): PromptChunk {
  let data = new Uint8Array()
  let format = ''
  let tokens = 0
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) data = Uint8Array.from(field.bytes)
    if (field.number === 2) format = textOf(field.bytes)
    if (field.number === 3) tokens = field.value
  }
  return imageChunk(data, format, tokens, `datum ${index}`)
}

export function imageChunk(
  data: Uint8Array,
  format: string,
  tokens: number | undefined,
  where: string,
): PromptChunk {
  if (format !== 'png' && format !== 'jpeg')
    throw new DataError(`${where}: an image is "${format}"; png and jpeg are known`)
  if (tokens === undefined || tokens < 1)
    throw new DataError(
      `${where}: an image doesn't tell its expected_tokens, which are needed here`,
    )
  return { type: 'image', data, format, tokens }
}

function decodeTensor(bytes: Uint8Array, where: string): Tensor {
  let dense: Uint8Array = new Uint8Array()
  let sparse: Uint8Array | undefined
  let dtype = 0
  let shape: readonly number[] = []
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) dense = field.bytes
    if (field.number === 2) sparse = field.bytes
    if (field.number === 3) dtype = field.value
    if (field.number === 4) shape = [...shape, ...packedOf(field)]
  }
  if (sparse !== undefined) return decodeSparse(sparse, dtype, shape, where)
  const data = valuesOf(dense, dtype, where)
  return checkShape({ data, shape: shape.length === 0 ? [data.length] : shape }, where)
}

function decodeSparse(
  bytes: Uint8Array,
  dtype: number,
  shape: readonly number[],
  where: string,
): Tensor {
  let values: Uint8Array = new Uint8Array()
  let starts = new Int32Array()
  let columns = new Int32Array()
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) values = field.bytes
    if (field.number === 2) starts = idsOf(field.bytes)
    if (field.number === 3) columns = idsOf(field.bytes)
  }
  return fillUp(valuesOf(values, dtype, where), starts, columns, shape, where)
}

/** Compressed sparse rows as a dense tensor. */
export function fillUp(
  values: Float32Array | Int32Array,
  starts: Int32Array,
  columns: Int32Array,
  shape: readonly number[],
  where: string,
): Tensor {
  const [rows, width, ...more] = shape
  if (rows === undefined || width === undefined || more.length > 0 || rows * width > MAX_DENSE)
    throw new DataError(`${where}: a sparse tensor needs a shape of two, not ${shape.join(' × ')}`)
  const fits =
    starts.length === rows + 1 &&
    columns.length === values.length &&
    starts[0] === 0 &&
    starts[rows] === values.length &&
    columns.every((column) => column >= 0 && column < width) &&
    starts.every((start, row) => row === 0 || start >= starts[row - 1]!)
  if (!fits) throw new DataError(`${where}: the indices of a sparse tensor don't fit its shape`)
  const data =
    values instanceof Float32Array ? new Float32Array(rows * width) : new Int32Array(rows * width)
  for (let row = 0; row < rows; row += 1)
    for (let at = starts[row]!; at < starts[row + 1]!; at += 1)
      data[row * width + columns[at]!] = values[at]!
  return { data, shape: [rows, width] }
}

export function checkShape(tensor: Tensor, where: string): Tensor {
  const size = tensor.shape.reduce((product, length) => product * length, 1)
  if (size === tensor.data.length && tensor.shape.length <= 2) return tensor
  throw new DataError(
    `${where}: ${tensor.data.length} values don't make ${tensor.shape.join(' × ')}`,
  )
}

function valuesOf(bytes: Uint8Array, dtype: number, where: string): Float32Array | Int32Array {
  if (dtype === FLOAT32) return float32Of(bytes)
  if (dtype === INT64) return idsOf(bytes)
  if (dtype === INT32) return int32Of(bytes)
  if (dtype === BFLOAT16) return bfloat16Of(bytes)
  throw new DataError(
    `${where}: values of type ${dtype}; float32, int64, int32, bfloat16 are known`,
  )
}
