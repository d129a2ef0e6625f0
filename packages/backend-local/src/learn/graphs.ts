import { graphBuilder, type GraphBuilder, type Value } from '../graph/builder.ts'
import { matmul, type Operations, operations } from '../graph/operations.ts'
import { createTape, type ValueGradient } from '../graph/tape.ts'
import { adaptedWeight, type LoraShape, trainableOf } from '../model/adapters.ts'
import { decoder, finalStates } from '../model/decoder.ts'
import { headName, parametersOf } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import type { Graph } from '../onnx/model.ts'
import { lossSlope } from './losses.ts'

/**
 * The learner's graphs. Rows of a batch may share a prefix that was computed once: its keys and values come in, and what flows
 * back into them goes out. Right padding needs no mask of its own, since nothing before it looks at it.
 *
 * Names of inputs: the parameters; `tokens` [B, S]; `position` [1], where the rows begin; `rows` [B, 1, 1, 1]; `lengths` [P, S];
 * `mask` [G·S, P+S]; `cos` `sin` `reverse`; `prefix.<layer>.key|value` [1, KV, P, d].
 */

/** Log-probabilities of `targets` [N] as `logprobs` [N, 1], and `own.<layer>.key|value` [B, KV, S, d]. */
export function scoreGraph(shape: ModelShape, lora: LoraShape | undefined): Graph {
  const parts = start(shape, lora)
  const head = scoreTargets(parts)
  parts.graph.output('logprobs', head.logprobs)
  outputOwn(parts)
  return parts.graph.build()
}

/**
 * As `scoreGraph` without the keys and values, with the gradients of one loss. `loss` [1] chooses it; `weight`, `advantage`,
 * `recorded`, `trained` (the mask) are [N, 1]; `low`, `high`, `beta` [1]. Gradients are `d.<parameter>`, and of the prefix
 * `d.prefix.<layer>.key|value`. Those of embedding and head come as rows to add up by token: `rows.token` [B, S, D] for the
 * input tokens, `rows.target` [N, D], to be subtracted, for the targets, and `d.head` [V, D].
 */
export function learnGraph(shape: ModelShape, lora: LoraShape | undefined): Graph {
  const parts = start(shape, lora)
  const { graph, weight } = parts
  const { node } = graph
  const product = matmul(graph)
  const { logprobs, states, targets, distribution } = scoreTargets(parts)
  graph.output('logprobs', logprobs)

  const perToken = (name: string) => graph.input(name, 'float', ['N', 1])
  const single = (name: string) => graph.input(name, 'float', [1])
  const slope = node('Mul', [
    lossSlope(
      graph,
      graph.input('loss', 'int64', [1]),
      logprobs,
      {
        weight: perToken('weight'),
        advantage: perToken('advantage'),
        recorded: perToken('recorded'),
      },
      { low: single('low'), high: single('high'), beta: single('beta') },
    ),
    perToken('trained'),
  ])
  // dL/dlogits = slope · (softmax − onehot(target)); the second term is a row of the head, so no one-hot matrix is needed.
  const head = weight(headName(shape))
  const spread = node('Mul', [node('Exp', [distribution]), slope])
  const targetRows = node('Gather', [head, targets], { attributes: { axis: 0 } })
  const dStates = node('Sub', [product(spread, head), node('Mul', [targetRows, slope])])
  outputGradients(parts, [[states, dStates]], {
    head: product(spread, states, { transA: true }),
    targetRows: node('Mul', [states, slope]),
  })
  return graph.build()
}

/** Backward through a shared prefix alone: `upstream.<layer>.key|value` [1, KV, P, d] to the parameters. */
export function prefixGraph(shape: ModelShape, lora: LoraShape | undefined): Graph {
  const parts = start(shape, lora)
  const seeds = parts.own.map(({ name, value }): ValueGradient => {
    return [
      value,
      parts.graph.input(`upstream.${name}`, 'float', ['B', shape.kvHeads, 'S', shape.headSize]),
    ]
  })
  outputGradients(parts, seeds)
  return parts.graph.build()
}

interface Parts {
  readonly shape: ModelShape
  readonly lora: LoraShape | undefined
  readonly graph: GraphBuilder
  readonly op: Operations
  readonly tape: ReturnType<typeof createTape>
  readonly inputs: ReadonlyMap<string, Value>
  readonly weight: (name: string) => Value
  readonly embedded: Value
  readonly stream: Value
  readonly prefix: readonly Named[]
  readonly own: readonly Named[]
}

interface Named {
  readonly name: string
  readonly value: Value
}

function start(shape: ModelShape, lora: LoraShape | undefined): Parts {
  const { kvHeads, headSize } = shape
  const graph = graphBuilder()
  const tape = createTape(graph)
  const op = operations(graph, tape)
  const inputs = new Map<string, Value>()
  for (const info of [
    ...parametersOf(shape),
    ...(lora === undefined ? [] : trainableOf(shape, lora)),
  ]) {
    inputs.set(info.name, graph.input(info.name, 'float', info.shape))
  }
  const weights = new Map<string, Value>()
  const weight = (name: string) => {
    const value = weights.get(name) ?? adaptedWeight(op, inputs, name, lora)
    weights.set(name, value)
    return value
  }
  const table = (name: string) => graph.input(name, 'float', [shape.contextWindow, headSize / 2])
  const rows = graph.input('rows', 'int64', [4])
  const lengths = graph.input('lengths', 'int64', [2])
  const mask = graph.input('mask', 'float', ['M', 'T'])
  const prefix: Named[] = []
  const own: Named[] = []
  const { embedded, stream } = decoder(graph, op, shape, {
    weight,
    scaled: (name, norm) => op.scaleRows(weight(name), weight(norm)),
    tokens: graph.input('tokens', 'int64', ['B', 'S']),
    rotary: {
      cos: table('cos'),
      sin: table('sin'),
      reverse: table('reverse'),
      position: graph.input('position', 'int64', [1]),
    },
    attend({ layer, query, key, value }) {
      const extended = (kind: string, mine: Value) => {
        const name = `${layer}.${kind}`
        const before = graph.input(`prefix.${name}`, 'float', [1, kvHeads, 'P', headSize])
        prefix.push({ name: `prefix.${name}`, value: before })
        own.push({ name, value: mine })
        return op.prepend(before, mine, rows, lengths)
      }
      return op.attention(
        query,
        extended('key', key),
        extended('value', value),
        mask,
        headSize ** -0.5,
      )
    },
  })
  return { shape, lora, graph, op, tape, inputs, weight, embedded, stream, prefix, own }
}

function scoreTargets({ graph, op, shape, weight, stream }: Parts) {
  const states = finalStates(op, shape, weight, op.flatten(stream))
  const logits = matmul(graph)(states, weight(headName(shape)), { transB: true })
  const distribution = graph.node('LogSoftmax', [logits], { attributes: { axis: -1 } })
  const targets = graph.input('targets', 'int64', ['N'])
  const column = graph.node('Reshape', [targets, graph.integers([-1, 1])])
  const logprobs = graph.node('GatherElements', [distribution, column], { attributes: { axis: 1 } })
  return { states, targets, distribution, logprobs }
}

function outputOwn({ graph, own }: Parts): void {
  for (const { name, value } of own) graph.output(`own.${name}`, value)
}

function outputGradients(
  { graph, tape, shape, lora, inputs, embedded, prefix }: Parts,
  seeds: readonly ValueGradient[],
  head?: { readonly head: Value; readonly targetRows: Value },
): void {
  const gradient = tape.gradients(seeds)
  for (const { name } of trainableOf(shape, lora)) {
    const value = gradient(inputs.get(name)!)
    if (value !== undefined) graph.output(`d.${name}`, value)
  }
  for (const { name, value } of prefix) {
    const arriving = gradient(value)
    if (arriving !== undefined && head !== undefined) graph.output(`d.${name}`, arriving)
  }
  if (lora !== undefined) return
  graph.output('rows.token', gradient(embedded)!)
  if (head === undefined) return
  graph.output('d.head', head.head)
  graph.output('rows.target', head.targetRows)
}
