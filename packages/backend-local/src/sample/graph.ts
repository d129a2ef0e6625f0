import { graphBuilder, type Value } from '../graph/builder.ts'
import { asMatrix, matmul, operations } from '../graph/operations.ts'
import { createTape } from '../graph/tape.ts'
import { decoder, finalStates } from '../model/decoder.ts'
import { headName, parametersOf } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import type { Graph } from '../onnx/model.ts'

/**
 * Keys are kept in blocks of this many positions. A sequence's full blocks are closed; its last, unfinished block is its tail.
 */
export const BLOCK = 32

/**
 * The sampler's graph: S new tokens for each of B sequences, all within one block, for prompts and for replies alike.
 *
 * What a token gets depends, bit for bit, on the tokens before it alone: not on the batch, nor on how the sequence was cut into
 * calls. A position's keys always stand at the same place of the row that the softmax sums, whether they were cached or came
 * with it: [prefix; tail block; closed blocks; padding], so equal numbers are added in equal order, and what pads adds zeros.
 *
 * Inputs: the parameters, projections scaled; `tokens` and `positions` [B, S]; `place` [B, 1, W, S], one where a new token stands
 * in the tail; `tail_mask` [B, 1, G·S, W]; `closed_mask` [B, 1, 1, T]; `tail.<layer>.key|value` [B, KV, W, d] and
 * `closed.<layer>.key|value` [B, KV, T, d], zero where unused; `split`, the widths [(P,) W, T]; `read` [R], which of the B·S
 * positions to read; `inverse_temperature` [R, 1]. With a prefix: `prefix.<layer>.key|value` [KV, P, d] and
 * three shapes for the turns between sequences and heads.
 *
 * Outputs: `logprobs` [R, V], untempered; `shares` [R, V], probabilities at the temperature; `new.<layer>.key|value` [B, KV, S, d].
 */
export function extendGraph(shape: ModelShape, withPrefix: boolean): Graph {
  const { kvHeads, headSize, contextWindow } = shape
  const graph = graphBuilder()
  const op = operations(graph, createTape(graph))
  const { node, input } = graph
  const product = matmul(graph)
  const alpha = headSize ** -0.5
  const weights = new Map(
    parametersOf(shape).map(({ name, shape: sizes }) => [name, input(name, 'float', sizes)]),
  )
  const weight = (name: string) => weights.get(name)!
  const table = (name: string) => input(name, 'float', [contextWindow, headSize / 2])
  const sin = table('sin')
  const place = input('place', 'float', ['B', 1, BLOCK, 'S'])
  const tailMask = input('tail_mask', 'float', ['B', 1, 'M', BLOCK])
  const closedMask = input('closed_mask', 'float', ['B', 1, 1, 'T'])
  const split = input('split', 'int64', [withPrefix ? 3 : 2])
  const scoreShape = input('score_shape', 'int64', [4])
  const shareShape = input('share_shape', 'int64', [3])
  const queryShape = input('query_shape', 'int64', [4])
  const swap = (x: Value) => node('Transpose', [x], { attributes: { perm: [1, 0, 2, 3] } })
  const reshape = (x: Value, to: Value) => node('Reshape', [x, to])

  const { stream } = decoder(graph, op, shape, {
    weight,
    scaled: weight,
    tokens: input('tokens', 'int64', ['B', 'S']),
    rotary: {
      cos: table('cos'),
      sin,
      reverse: sin,
      position: input('positions', 'int64', ['B', 'S']),
    },
    attend({ layer, query, key, value }) {
      const stored = (kind: string, name: string) =>
        input(`${kind}.${layer}.${name}`, 'float', [
          'B',
          kvHeads,
          kind === 'tail' ? BLOCK : 'T',
          headSize,
        ])
      const block = (name: string, fresh: Value) => {
        graph.output(`new.${layer}.${name}`, fresh)
        return node('Add', [stored('tail', name), node('MatMul', [place, fresh])])
      }
      const tailKeys = block('key', key)
      const tailValues = block('value', value)
      const scores = [
        node('Add', [product(query, tailKeys, { transB: true, alpha }), tailMask]),
        node('Add', [product(query, stored('closed', 'key'), { transB: true, alpha }), closedMask]),
      ]
      // All sequences ask the one copy of the prefix: [KV, B·G·S, d] against [KV, P, d].
      const shared = (name: string) =>
        input(`prefix.${layer}.${name}`, 'float', [kvHeads, 'P', headSize])
      if (withPrefix) {
        const asked = reshape(swap(query), graph.integers([kvHeads, -1, headSize]))
        scores.unshift(
          swap(reshape(product(asked, shared('key'), { transB: true, alpha }), scoreShape)),
        )
      }
      const shares = node('Softmax', [node('Concat', scores, { attributes: { axis: -1 } })], {
        attributes: { axis: -1 },
      })
      const parts = graph.nodes('Split', [shares, split], scores.length, {
        attributes: { axis: -1 },
      })
      const [tailShares, closedShares] = parts.slice(-2) as [Value, Value]
      const own = node('Add', [
        node('MatMul', [tailShares, tailValues]),
        node('MatMul', [closedShares, stored('closed', 'value')]),
      ])
      if (!withPrefix) return own
      const fromPrefix = node('MatMul', [reshape(swap(parts[0]!), shareShape), shared('value')])
      return node('Add', [swap(reshape(fromPrefix, queryShape)), own])
    },
  })
  const read = node('Gather', [asMatrix(graph, stream), input('read', 'int64', ['R'])], {
    attributes: { axis: 0 },
  })
  const logits = product(finalStates(op, shape, weight, read), weight(headName(shape)), {
    transB: true,
  })
  const softmax = (kind: string, x: Value) => node(kind, [x], { attributes: { axis: -1 } })
  graph.output('logprobs', softmax('LogSoftmax', logits))
  graph.output(
    'shares',
    softmax('Softmax', node('Mul', [logits, input('inverse_temperature', 'float', ['R', 1])])),
  )
  return graph.build()
}
