import { uniform } from '../random.ts'
import type { ModelShape } from './shape.ts'

/**
 * The tensors of a model by their Hugging Face names. Projections are kept [in, out], the way they are multiplied here; files
 * keep them [out, in]. Embedding and head are [vocabulary, width] in both.
 */
export interface ParameterInfo {
  readonly name: string
  readonly shape: readonly number[]
  readonly kind: 'embedding' | 'projection' | 'norm'
}

export type Tensors = ReadonlyMap<string, Float32Array>

export const EMBEDDING = 'model.embed_tokens.weight'
const HEAD = 'lm_head.weight'
export const FINAL_NORM = 'model.norm.weight'

export function headName({ tiedEmbeddings }: ModelShape): string {
  return tiedEmbeddings ? EMBEDDING : HEAD
}

export function layerName(layer: number, name: string): string {
  return `model.layers.${layer}.${name}.weight`
}

export function parametersOf(shape: ModelShape): readonly ParameterInfo[] {
  const { vocabularySize, width, layers, heads, kvHeads, headSize, hidden, tiedEmbeddings } = shape
  const embedding = (name: string) =>
    ({ name, shape: [vocabularySize, width], kind: 'embedding' }) as const
  return [
    embedding(EMBEDDING),
    ...Array.from({ length: layers }, (_, layer) => {
      const at = (name: string) => layerName(layer, name)
      return [
        norm(at('input_layernorm'), width),
        projection(at('self_attn.q_proj'), width, heads * headSize),
        projection(at('self_attn.k_proj'), width, kvHeads * headSize),
        projection(at('self_attn.v_proj'), width, kvHeads * headSize),
        norm(at('self_attn.q_norm'), headSize),
        norm(at('self_attn.k_norm'), headSize),
        projection(at('self_attn.o_proj'), heads * headSize, width),
        norm(at('post_attention_layernorm'), width),
        projection(at('mlp.gate_proj'), width, hidden),
        projection(at('mlp.up_proj'), width, hidden),
        projection(at('mlp.down_proj'), hidden, width),
      ]
    }).flat(),
    norm(FINAL_NORM, width),
    ...(tiedEmbeddings ? [] : [embedding(HEAD)]),
  ]
}

function projection(name: string, from: number, to: number): ParameterInfo {
  return { name, shape: [from, to], kind: 'projection' }
}

function norm(name: string, length: number): ParameterInfo {
  return { name, shape: [length], kind: 'norm' }
}

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

export function parameterCount(shape: ModelShape): number {
  return parametersOf(shape).reduce((sum, info) => sum + elementsOf(info.shape), 0)
}

/** How weights begin. */
export interface InitialWeights {
  readonly seed: number
  /** Deviation of the normal numbers in embeddings and projections. */
  readonly deviation: number
  /** Value of the query and key norms; the product of two of them is how sharp attention begins. */
  readonly queryKeyNorm: number
}

/** Norms at one, the rest normal, projections into the residual stream smaller by the root of twice the depth. */
export function initialTensors(
  shape: ModelShape,
  { seed, deviation, queryKeyNorm }: InitialWeights,
): Map<string, Float32Array> {
  const tensors = new Map<string, Float32Array>()
  const depth = Math.sqrt(2 * shape.layers)
  parametersOf(shape).forEach(({ name, shape: sizes, kind }, index) => {
    const length = elementsOf(sizes)
    if (kind === 'norm') {
      tensors.set(name, new Float32Array(length).fill(/[qk]_norm/.test(name) ? queryKeyNorm : 1))
      return
    }
    const intoResidual = name.includes('o_proj') || name.includes('down_proj')
    tensors.set(name, normals(length, intoResidual ? deviation / depth : deviation, seed, index))
  })
  return tensors
}

/** Normal numbers by Box and Muller's method from a stream of their own. */
export function normals(
  length: number,
  deviation: number,
  seed: number,
  stream: number,
): Float32Array {
  return Float32Array.from({ length }, (_, at) => {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform(seed, stream, 2 * at)))
    return deviation * radius * Math.cos(2 * Math.PI * uniform(seed, stream, 2 * at + 1))
  })
}
