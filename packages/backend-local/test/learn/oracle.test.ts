import { defaultDevice, grad, init, nn, numpy as np } from '@jax-js/jax'
import type { Loss } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { spansOf, type PackedData, type Span } from '../../src/learn/packed-data.ts'
import { rotaryTables } from '../../src/model/decoder.ts'
import { parametersOf } from '../../src/model/parameters.ts'
import {
  freshState,
  gradientOf,
  relativeError,
  shape,
  someData,
  testExecutor,
  testTrainer,
} from '../support/engine.ts'

/**
 * The decoder once more, for one sequence, in a library that differentiates by itself. Its arrays are consumed by the operation
 * that takes them; `.ref` keeps one for another use.
 */

type Weights = Record<string, np.Array>

const { heads, kvHeads, headSize, layers, epsilon, vocabularySize } = shape
const tables = rotaryTables(shape)

function normed(x: np.Array, scale: np.Array): np.Array {
  const square = np.mean(x.ref.mul(x.ref), -1, { keepdims: true })
  return x.div(np.sqrt(square.add(epsilon))).mul(scale)
}

function rotated(x: np.Array, length: number): np.Array {
  const half = headSize / 2
  const table = (values: Float32Array) =>
    np.array(values.slice(0, length * half)).reshape([length, 1, half])
  const [first, second] = np.split(x, 2, -1) as [np.Array, np.Array]
  const left = first.ref.mul(table(tables.cos)).sub(second.ref.mul(table(tables.sin)))
  const right = second.mul(table(tables.cos)).add(first.mul(table(tables.sin)))
  return np.concatenate([left, right], -1)
}

function oneHot(ids: Int32Array): np.Array {
  const rows = new Float32Array(ids.length * vocabularySize)
  ids.forEach((id, row) => (rows[row * vocabularySize + id] = 1))
  return np.array(rows).reshape([ids.length, vocabularySize])
}

function causal(length: number): np.Array {
  const values = Float32Array.from({ length: length * length }, (_, at) =>
    at % length > Math.floor(at / length) ? -1e9 : 0,
  )
  return np.array(values).reshape([1, length, length])
}

/** Log-probabilities [S] of targets. */
function score(w: Weights, tokens: Int32Array, targets: Int32Array): np.Array {
  const length = tokens.length
  const embedding = w['model.embed_tokens.weight']!
  let x = np.matmul(oneHot(tokens), embedding.ref)
  for (let layer = 0; layer < layers; layer += 1) {
    const own = (name: string) => w[`model.layers.${layer}.${name}.weight`]!.ref
    const input = normed(x.ref, own('input_layernorm'))
    const split = (name: string, count: number) =>
      np.matmul(input.ref, own(`self_attn.${name}`)).reshape([length, count, headSize])
    const query = rotated(normed(split('q_proj', heads), own('self_attn.q_norm')), length)
    const key = rotated(normed(split('k_proj', kvHeads), own('self_attn.k_norm')), length)
    const spread = (of: np.Array) => np.repeat(of, heads / kvHeads, 1)
    // Its einsum needs a newer Node.
    const scores = np
      .matmul(np.transpose(query, [1, 0, 2]), np.transpose(spread(key), [1, 2, 0]))
      .mul(headSize ** -0.5)
      .add(causal(length))
    const values = np.transpose(spread(split('v_proj', kvHeads)), [1, 0, 2])
    const seen = np.transpose(np.matmul(nn.softmax(scores, -1), values), [1, 0, 2])
    x = x.add(np.matmul(seen.reshape([length, heads * headSize]), own('self_attn.o_proj')))
    const feed = normed(x.ref, own('post_attention_layernorm'))
    const gate = nn.silu(np.matmul(feed.ref, own('mlp.gate_proj')))
    const inner = gate.mul(np.matmul(feed, own('mlp.up_proj')))
    x = x.add(np.matmul(inner, own('mlp.down_proj')))
  }
  const states = normed(x, w['model.norm.weight']!.ref)
  const distribution = nn.logSoftmax(np.matmul(states, np.transpose(embedding.ref)), -1)
  return np.sum(distribution.mul(oneHot(targets)), -1)
}

function lossOf(w: Weights, data: PackedData, { start, length }: Span): np.Array {
  const cut = <T extends Int32Array | Float32Array>(of: T) => of.slice(start, start + length) as T
  const p = score(w, cut(data.tokens), cut(data.targets))
  if (data.weights !== undefined) return np.sum(p.mul(np.array(cut(data.weights)))).mul(-1)
  const ratio = np.exp(p.sub(np.array(cut(data.recorded!))))
  return np.sum(ratio.mul(np.array(cut(data.advantages!)))).mul(-1)
}

// Both are WebAssembly with threads, and they don't load beside each other; the native build is compared.
const executor = await testExecutor()

test
  .skipIf(executor.name === 'onnxruntime-web')
  .each<Loss>([{ name: 'cross_entropy' }, { name: 'importance_sampling' }])(
  '$name: every gradient is the one that an independent library derives',
  async (loss) => {
    await init('wasm')
    defaultDevice('wasm')
    const { weights } = freshState()
    const data = someData(loss, 33)
    const expected = new Map<string, Float64Array>()
    for (const span of spansOf(data)) {
      const arrays = Object.fromEntries(
        parametersOf(shape).map((info) => [
          info.name,
          np.array(weights.get(info.name)!.slice()).reshape([...info.shape]),
        ]),
      )
      const gradients = grad((w: Weights) => lossOf(w, data, span))(arrays)
      for (const [name, gradient] of Object.entries(gradients)) {
        const values = (await gradient.data()) as Float32Array
        const sum = expected.get(name) ?? new Float64Array(values.length)
        values.forEach((value, at) => (sum[at]! += value))
        expected.set(name, sum)
      }
    }
    const found = await gradientOf(testTrainer({ executor }), data, loss)
    const errors = [...expected].map(([name, tensor]) => relativeError(found.get(name)!, tensor))
    expect(errors).toHaveLength(parametersOf(shape).length)
    expect(Math.max(...errors)).toBeLessThan(1e-4)
  },
  60_000,
)
