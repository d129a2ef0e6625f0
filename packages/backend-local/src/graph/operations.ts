import { MICROSOFT } from '../onnx/model.ts'
import type { GraphBuilder, Value } from './builder.ts'
import type { Tape } from './tape.ts'

/** Half-width tables [positions, size/2] and where the input's positions stand in them. */
export interface Rotary {
  readonly cos: Value
  readonly sin: Value
  /** −sin, which turns back. */
  readonly reverse: Value
  /** int64: [1], the first of consecutive positions, or [B, S], each one. */
  readonly position: Value
}

export interface MatmulOptions {
  readonly transA?: boolean
  readonly transB?: boolean
  readonly alpha?: number
}

/** The operations of a decoder, each with its gradient on the tape. */
export interface Operations {
  /** x[…, K] · w[K, N] */
  linear(x: Value, w: Value): Value
  add(a: Value, b: Value): Value
  /** x[…, N] · scale[N], element by element. */
  scaleLast(x: Value, scale: Value): Value
  /** w[K, N] with row k times scale[k]. */
  scaleRows(w: Value, scale: Value): Value
  /** a[K, R] · b[R, N] · factor, for low-rank updates of weights. */
  product(a: Value, b: Value, factor: number): Value
  /** x over its root mean square along the last axis, which has `size` entries. */
  normalize(x: Value, size: number, epsilon: number): Value
  /** silu(gate) · up */
  swiglu(gate: Value, up: Value): Value
  /** Turns pairs (i, i + size/2) of every head in x[B, S, heads · size] by its position's angle. */
  rotate(x: Value, rotary: Rotary, heads: number): Value
  /** `shape` and `original` as in ONNX: 0 copies a dimension, −1 infers one. */
  reshape(x: Value, shape: readonly number[], original: readonly number[]): Value
  /** x[…, N] as rows [·, N]. */
  flatten(x: Value): Value
  transpose(x: Value, order: readonly number[]): Value
  /** [first for every row; second] along axis 2: first[1, H, P, d], second[B, H, S, d]; `rows` int64 [B, 1, 1, 1], `lengths` int64 [P, S]. */
  prepend(first: Value, second: Value, rows: Value, lengths: Value): Value
  /** softmax(q·kᵀ·scale + mask) · v with q[B, H, M, d], k and v [B, H, T, d], mask [M, T]. */
  attention(q: Value, k: Value, v: Value, mask: Value, scale: number): Value
}

export function operations(graph: GraphBuilder, tape: Tape): Operations {
  const { node, integers } = graph
  const product = matmul(graph)
  const multiply = (a: Value, b: Value) => node('Mul', [a, b])
  const sum = (x: Value, axis: number, keepdims: 0 | 1) =>
    node('ReduceSum', [x, integers([axis])], { attributes: { keepdims } })

  return {
    linear(x, w) {
      const y = node('MatMul', [x, w])
      tape.record([y], ([dy]) => [
        [x, product(dy!, w, { transB: true })],
        [w, product(asMatrix(graph, x), asMatrix(graph, dy!), { transA: true })],
      ])
      return y
    },
    add(a, b) {
      const y = node('Add', [a, b])
      tape.record([y], ([dy]) => [
        [a, dy!],
        [b, dy!],
      ])
      return y
    },
    scaleLast(x, scale) {
      const y = multiply(x, scale)
      tape.record([y], ([dy]) => [
        [x, multiply(dy!, scale)],
        [scale, sum(asMatrix(graph, multiply(dy!, x)), 0, 0)],
      ])
      return y
    },
    scaleRows(w, scale) {
      const column = node('Reshape', [scale, integers([-1, 1])])
      const y = multiply(w, column)
      tape.record([y], ([dy]) => [
        [w, multiply(dy!, column)],
        [scale, sum(multiply(dy!, w), 1, 0)],
      ])
      return y
    },
    product(a, b, alpha) {
      const y = product(a, b, { alpha })
      tape.record([y], ([dy]) => [
        [a, product(dy!, b, { transB: true, alpha })],
        [b, product(a, dy!, { transA: true, alpha })],
      ])
      return y
    },
    normalize(x, size, epsilon) {
      const ones = graph.constant([size], new Float32Array(size).fill(1))
      const [y, inverse] = graph.nodes('SimplifiedLayerNormalization', [x, ones], 2, {
        attributes: { axis: -1, epsilon: { float: epsilon }, stash_type: 1 },
      }) as readonly [Value, Value]
      tape.record([y], ([dy]) => {
        const along = node('ReduceMean', [multiply(dy!, y)], {
          attributes: { axes: [-1], keepdims: 1 },
        })
        return [[x, multiply(node('Sub', [dy!, multiply(y, along)]), inverse)]]
      })
      return y
    },
    swiglu(gate, up) {
      const sigmoid = node('Sigmoid', [gate])
      const silu = multiply(gate, sigmoid)
      const y = multiply(silu, up)
      tape.record([y], ([dy]) => {
        // silu′ = σ + silu·(1 − σ)
        const slope = node('Sub', [node('Add', [sigmoid, silu]), multiply(sigmoid, silu)])
        return [
          [gate, multiply(multiply(dy!, up), slope)],
          [up, multiply(dy!, silu)],
        ]
      })
      return y
    },
    rotate(x, { cos, sin, reverse, position }, heads) {
      const turn = (value: Value, sine: Value) =>
        node('RotaryEmbedding', [value, position, cos, sine], {
          domain: MICROSOFT,
          attributes: { interleaved: 0, num_heads: heads },
        })
      const y = turn(x, sin)
      tape.record([y], ([dy]) => [[x, turn(dy!, reverse)]])
      return y
    },
    reshape(x, shape, original) {
      const y = node('Reshape', [x, integers(shape)])
      tape.record([y], ([dy]) => [[x, node('Reshape', [dy!, integers(original)])]])
      return y
    },
    flatten(x) {
      const y = asMatrix(graph, x)
      tape.record([y], ([dy]) => [[x, node('Reshape', [dy!, node('Shape', [x])])]])
      return y
    },
    transpose(x, order) {
      const y = node('Transpose', [x], { attributes: { perm: order } })
      const back = order.map((_, axis) => order.indexOf(axis))
      tape.record([y], ([dy]) => [[x, node('Transpose', [dy!], { attributes: { perm: back } })]])
      return y
    },
    prepend(first, second, rows, lengths) {
      const y = node('Concat', [node('Expand', [first, rows]), second], { attributes: { axis: 2 } })
      tape.record([y], ([dy]) => {
        const [dFirst, dSecond] = graph.nodes('Split', [dy!, lengths], 2, {
          attributes: { axis: 2 },
        }) as readonly [Value, Value]
        return [
          [first, sum(dFirst, 0, 1)],
          [second, dSecond],
        ]
      })
      return y
    },
    attention(q, k, v, mask, alpha) {
      const scores = node('Add', [product(q, k, { transB: true, alpha }), mask])
      const shares = node('Softmax', [scores], { attributes: { axis: -1 } })
      const y = node('MatMul', [shares, v])
      tape.record([y], ([dy]) => {
        // The softmax's own sum over keys, Σ shares·dShares, equals Σ dy·y over the much shorter head.
        const along = sum(multiply(dy!, y), -1, 1)
        const dScores = multiply(shares, node('Sub', [product(dy!, v, { transB: true }), along]))
        return [
          [q, product(dScores, k, { alpha })],
          [k, product(dScores, q, { transA: true, alpha })],
          [v, product(shares, dy!, { transA: true })],
        ]
      })
      return y
    },
  }
}

/** Matrix product with transposes and a factor, without copies. */
export function matmul(graph: GraphBuilder) {
  return (
    a: Value,
    b: Value,
    { transA = false, transB = false, alpha = 1 }: MatmulOptions = {},
  ): Value =>
    graph.node('FusedMatMul', [a, b], {
      domain: MICROSOFT,
      attributes: { transA: Number(transA), transB: Number(transB), alpha: { float: alpha } },
    })
}

/** x[…, N] as [rows, N]. */
export function asMatrix(graph: GraphBuilder, x: Value): Value {
  return graph.node('Flatten', [x], { attributes: { axis: -1 } })
}
