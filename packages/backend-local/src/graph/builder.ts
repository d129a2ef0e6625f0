import type {
  Attribute,
  Constant,
  Dimension,
  ElementType,
  Graph,
  Node,
  Port,
} from '../onnx/model.ts'

/** A tensor inside a graph under construction. */
export interface Value {
  readonly name: string
}

export interface NodeOptions {
  readonly domain?: string
  readonly attributes?: Readonly<Record<string, Attribute>>
}

/** Collects nodes in an order in which they can run. */
export interface GraphBuilder {
  readonly input: (name: string, type: ElementType, shape: readonly Dimension[]) => Value
  readonly constant: (shape: readonly number[], data: Float32Array) => Value
  /** A constant list of whole numbers, such as the target of a Reshape. */
  readonly integers: (values: readonly number[]) => Value
  readonly node: (op: string, inputs: readonly Value[], options?: NodeOptions) => Value
  /** A node of several outputs. */
  readonly nodes: (
    op: string,
    inputs: readonly Value[],
    count: number,
    options?: NodeOptions,
  ) => readonly Value[]
  readonly output: (name: string, value: Value) => void
  /** The graph without what no output needs. */
  readonly build: () => Graph
}

export function graphBuilder(): GraphBuilder {
  const nodes: Node[] = []
  const constants: Constant[] = []
  const known = new Map<string, Value>()
  const inputs: Port[] = []
  const outputs = new Map<string, string>()
  let count = 0
  const fresh = (): Value => {
    count += 1
    return { name: `v${count}` }
  }
  const addConstant = (shape: readonly number[], data: Float32Array | BigInt64Array): Value => {
    const key = `${data instanceof Float32Array ? 'float' : 'int64'} [${shape.join()}] ${data.join()}`
    const value = known.get(key) ?? fresh()
    if (!known.has(key)) constants.push({ name: value.name, shape, data })
    known.set(key, value)
    return value
  }
  const addNodes: GraphBuilder['nodes'] = (
    op,
    from,
    size,
    { domain = '', attributes = {} } = {},
  ) => {
    const to = Array.from({ length: size }, fresh)
    nodes.push({ op, domain, attributes, inputs: from.map(nameOf), outputs: to.map(nameOf) })
    return to
  }
  return {
    input(name, type, shape) {
      inputs.push({ name, type, shape })
      return { name }
    },
    constant: addConstant,
    integers: (values) => addConstant([values.length], BigInt64Array.from(values, BigInt)),
    nodes: addNodes,
    node: (op, from, options) => addNodes(op, from, 1, options)[0]!,
    output(name, value) {
      const other = outputs.get(value.name)
      if (other !== undefined) throw new Error(`${name} is already an output, as ${other}`)
      outputs.set(value.name, name)
    },
    build() {
      const rename = (name: string) => outputs.get(name) ?? name
      const needed = new Set(outputs.keys())
      const kept: Node[] = []
      for (const node of nodes.toReversed()) {
        if (!node.outputs.some((name) => needed.has(name))) continue
        node.inputs.forEach((name) => needed.add(name))
        kept.push({ ...node, inputs: node.inputs.map(rename), outputs: node.outputs.map(rename) })
      }
      return {
        nodes: kept.toReversed(),
        constants: constants.filter(({ name }) => needed.has(name)),
        inputs: inputs.filter(({ name }) => needed.has(name)),
        outputs: [...outputs.values()].map((name) => ({ name, type: 'float', shape: undefined })),
      }
    },
  }
}

function nameOf({ name }: Value): string {
  return name
}
