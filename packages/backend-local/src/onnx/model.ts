import { bytes, float, integer, message } from './protobuf.ts'

/** An ONNX graph as data, and its encoding. Field numbers are those of onnx.proto3 (IR version 8). */

export type ElementType = 'float' | 'int64'
/** A number is a fixed size, a string names a dynamic one. */
export type Dimension = number | string

export interface Port {
  readonly name: string
  readonly type: ElementType
  /** Absent: the runtime infers it. */
  readonly shape: readonly Dimension[] | undefined
}

/** Whole numbers become ints; wrap a whole float in `floatAttribute`. */
export type Attribute = number | readonly number[] | string | { readonly float: number }

export interface Node {
  readonly op: string
  /** Empty for the standard operators. */
  readonly domain: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes: Readonly<Record<string, Attribute>>
}

export interface Constant {
  readonly name: string
  readonly shape: readonly number[]
  readonly data: Float32Array | BigInt64Array
}

export interface Graph {
  readonly nodes: readonly Node[]
  readonly constants: readonly Constant[]
  readonly inputs: readonly Port[]
  readonly outputs: readonly Port[]
}

/** Where ONNX Runtime keeps its fused operators. */
export const MICROSOFT = 'com.microsoft'

const IR_VERSION = 8
const OPSET = 17
const FLOAT = 1
const INT64 = 7
const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, ints: 7 } as const

export function encodeModel(graph: Graph): Uint8Array {
  return message([
    integer(1, IR_VERSION),
    bytes(2, 'tiltyard'),
    bytes(7, encodeGraph(graph)),
    bytes(8, message([bytes(1, ''), integer(2, OPSET)])),
    bytes(8, message([bytes(1, MICROSOFT), integer(2, 1)])),
  ])
}

function encodeGraph({ nodes, constants, inputs, outputs }: Graph): Uint8Array {
  return message([
    ...nodes.map((node) => bytes(1, encodeNode(node))),
    bytes(2, 'graph'),
    ...constants.map((constant) => bytes(5, encodeConstant(constant))),
    ...inputs.map((port) => bytes(11, encodePort(port))),
    ...outputs.map((port) => bytes(12, encodePort(port))),
  ])
}

function encodeNode({ op, domain, inputs, outputs, attributes }: Node): Uint8Array {
  return message([
    ...inputs.map((name) => bytes(1, name)),
    ...outputs.map((name) => bytes(2, name)),
    bytes(4, op),
    ...Object.entries(attributes).map(([name, value]) => bytes(5, encodeAttribute(name, value))),
    ...(domain === '' ? [] : [bytes(7, domain)]),
  ])
}

function encodeAttribute(name: string, value: Attribute): Uint8Array {
  const head = bytes(1, name)
  if (typeof value === 'number') return message([head, integer(3, value), attributeType('int')])
  if (typeof value === 'string') return message([head, bytes(4, value), attributeType('string')])
  if ('float' in value) return message([head, float(2, value.float), attributeType('float')])
  return message([head, ...value.map((item) => integer(8, item)), attributeType('ints')])
}

function attributeType(kind: keyof typeof ATTRIBUTE_TYPE): Uint8Array {
  return integer(20, ATTRIBUTE_TYPE[kind])
}

function encodeConstant({ name, shape, data }: Constant): Uint8Array {
  return message([
    ...shape.map((size) => integer(1, size)),
    integer(2, data instanceof Float32Array ? FLOAT : INT64),
    bytes(8, name),
    bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  ])
}

function encodePort({ name, type, shape }: Port): Uint8Array {
  const dimensions = shape?.map((size) =>
    bytes(1, typeof size === 'number' ? integer(1, size) : bytes(2, size)),
  )
  const tensor = message([
    integer(1, type === 'float' ? FLOAT : INT64),
    ...(dimensions === undefined ? [] : [bytes(2, message(dimensions))]),
  ])
  return message([bytes(1, name), bytes(2, message([bytes(1, tensor)]))])
}
