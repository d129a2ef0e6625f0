import type { GraphBuilder, Value } from '../graph/builder.ts'
import type { Operations, Rotary } from '../graph/operations.ts'
import { EMBEDDING, FINAL_NORM, layerName } from './parameters.ts'
import { type ModelShape, queriesPerKey } from './shape.ts'

/** One layer's attention inputs: q[B, KV, G·S, d] with G queries to a key/value head, keys and values [B, KV, S, d]. */
export interface AttentionInputs {
  readonly layer: number
  readonly query: Value
  readonly key: Value
  readonly value: Value
}

export interface DecoderInputs {
  /** A parameter by name. */
  readonly weight: (name: string) => Value
  /**
   * The projection `name` with the scale of the norm before it multiplied into its rows: weights are far smaller than
   * activations.
   */
  readonly scaled: (name: string, norm: string) => Value
  /** int64 [B, S] */
  readonly tokens: Value
  readonly rotary: Rotary
  /** Attention over whatever the graph's user keeps: own positions, a prefix, a cache. Gives [B, KV, G·S, d]. */
  readonly attend: (inputs: AttentionInputs) => Value
}

export interface DecoderOutputs {
  /** Embedded tokens [B, S, D]. */
  readonly embedded: Value
  /** Residual stream after the last layer [B, S, D], before the final norm. */
  readonly stream: Value
}

/** Qwen3's decoder up to the final norm. */
export function decoder(
  graph: GraphBuilder,
  op: Operations,
  shape: ModelShape,
  { weight, scaled, tokens, rotary, attend }: DecoderInputs,
): DecoderOutputs {
  const { width, layers, heads, kvHeads, headSize, epsilon } = shape
  const group = queriesPerKey(shape)
  const embedded = graph.node('Gather', [weight(EMBEDDING), tokens], { attributes: { axis: 0 } })

  const normedHeads = (x: Value, count: number, scale: Value) => {
    const split = op.reshape(x, [0, 0, count, headSize], [0, 0, count * headSize])
    const normed = op.scaleLast(op.normalize(split, headSize, epsilon), scale)
    return op.rotate(
      op.reshape(normed, [0, 0, count * headSize], [0, 0, count, headSize]),
      rotary,
      count,
    )
  }
  const queries = (x: Value) => {
    const split = op.reshape(x, [0, 0, kvHeads, group, headSize], [0, 0, heads * headSize])
    return op.reshape(
      op.transpose(split, [0, 2, 3, 1, 4]),
      [0, 0, -1, headSize],
      [0, 0, group, -1, headSize],
    )
  }
  const keys = (x: Value) => {
    const split = op.reshape(x, [0, 0, kvHeads, headSize], [0, 0, kvHeads * headSize])
    return op.transpose(split, [0, 2, 1, 3])
  }
  const merged = (x: Value) => {
    const split = op.reshape(x, [0, 0, group, -1, headSize], [0, 0, -1, headSize])
    return op.reshape(
      op.transpose(split, [0, 3, 1, 2, 4]),
      [0, 0, heads * headSize],
      [0, 0, kvHeads, group, headSize],
    )
  }

  let stream = embedded
  for (let layer = 0; layer < layers; layer += 1) {
    const at = (name: string) => layerName(layer, name)
    const own = (name: string) => weight(at(name))

    const attentionInput = op.normalize(stream, width, epsilon)
    const project = (name: string) =>
      op.linear(attentionInput, scaled(at(`self_attn.${name}`), at('input_layernorm')))
    const attended = attend({
      layer,
      query: queries(normedHeads(project('q_proj'), heads, own('self_attn.q_norm'))),
      key: keys(normedHeads(project('k_proj'), kvHeads, own('self_attn.k_norm'))),
      value: keys(project('v_proj')),
    })
    stream = op.add(stream, op.linear(merged(attended), own('self_attn.o_proj')))

    const feedInput = op.normalize(stream, width, epsilon)
    const feed = (name: string) =>
      op.linear(feedInput, scaled(at(`mlp.${name}`), at('post_attention_layernorm')))
    stream = op.add(
      stream,
      op.linear(op.swiglu(feed('gate_proj'), feed('up_proj')), own('mlp.down_proj')),
    )
  }
  return { embedded, stream }
}

/** The final norm over rows [N, D] of the stream. */
export function finalStates(
  op: Operations,
  shape: ModelShape,
  weight: DecoderInputs['weight'],
  rows: Value,
): Value {
  return op.scaleLast(op.normalize(rows, shape.width, shape.epsilon), weight(FINAL_NORM))
}

/** Tables for `rotate`: cos, sin and −sin of position · base^(−2i/headSize), each [contextWindow, headSize/2]. */
export function rotaryTables({ contextWindow, headSize, rotaryBase }: ModelShape): {
  readonly cos: Float32Array
  readonly sin: Float32Array
  readonly reverse: Float32Array
} {
  const half = headSize / 2
  const angle = (at: number) => Math.floor(at / half) * rotaryBase ** (-(at % half) / half)
  const length = contextWindow * half
  return {
    cos: Float32Array.from({ length }, (_, at) => Math.cos(angle(at))),
    sin: Float32Array.from({ length }, (_, at) => Math.sin(angle(at))),
    reverse: Float32Array.from({ length }, (_, at) => -Math.sin(angle(at))),
  }
}
