import { ConfigError } from '@tiltyard/core'

import { type LoraShape, trainableOf } from '../model/adapters.ts'
import { elementsOf, type ParameterInfo, parametersOf, type Tensors } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import type { StoredTensor } from './safetensors.ts'

/** Our tensors as files keep them: projections turned to [out, in], the rest as it is. */
export function storedTensors(
  infos: readonly ParameterInfo[],
  tensors: Tensors,
): ReadonlyMap<string, StoredTensor> {
  return new Map(infos.map((info) => [info.name, stored(info, tensors.get(info.name)!)]))
}

/** The inverse of `storedTensors`. @throws ConfigError for a tensor that is missing or of another shape. */
export function loadedTensors(
  file: string,
  infos: readonly ParameterInfo[],
  found: ReadonlyMap<string, StoredTensor>,
): Map<string, Float32Array> {
  const mistakes = infos.flatMap((info) => {
    const tensor = found.get(info.name)
    const wanted = storedShape(info)
    if (tensor === undefined) return [{ at: file, message: `tensor ${info.name} is missing` }]
    if (tensor.shape.join() === wanted.join()) return []
    return [
      {
        at: file,
        message: `tensor ${info.name} is [${tensor.shape.join(', ')}], the model's is [${wanted.join(', ')}]`,
      },
    ]
  })
  if (mistakes.length > 0) throw new ConfigError('checkpoint of another shape', mistakes)
  return new Map(
    infos.map((info) => {
      const { data } = found.get(info.name)!
      const [from, to] = info.shape
      return [info.name, info.kind === 'projection' ? transposed(data, to!, from!) : data]
    }),
  )
}

function stored(info: ParameterInfo, data: Float32Array): StoredTensor {
  const [from, to] = info.shape
  return {
    shape: storedShape(info),
    data: info.kind === 'projection' ? transposed(data, from!, to!) : data,
  }
}

function storedShape({ kind, shape }: ParameterInfo): readonly number[] {
  return kind === 'projection' ? shape.toReversed() : shape
}

function transposed(data: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(data.length)
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1)
      result[column * rows + row] = data[row * columns + column]!
  }
  return result
}

/** A Hugging Face `config.json` of the class that these tensors are. */
export function configJson(shape: ModelShape): Readonly<Record<string, unknown>> {
  return {
    architectures: ['Qwen3ForCausalLM'],
    model_type: 'qwen3',
    attention_bias: false,
    attention_dropout: 0,
    head_dim: shape.headSize,
    hidden_act: 'silu',
    hidden_size: shape.width,
    intermediate_size: shape.hidden,
    max_position_embeddings: shape.contextWindow,
    num_attention_heads: shape.heads,
    num_hidden_layers: shape.layers,
    num_key_value_heads: shape.kvHeads,
    rms_norm_eps: shape.epsilon,
    rope_theta: shape.rotaryBase,
    tie_word_embeddings: shape.tiedEmbeddings,
    torch_dtype: 'float32',
    use_sliding_window: false,
    vocab_size: shape.vocabularySize,
  }
}

/** Prefix of adapter tensors in PEFT's layout. */
const PEFT = 'base_model.model.'

const projectionNames = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
]

/** PEFT's `adapter_config.json`. */
export function adapterConfigJson({ rank, alpha }: LoraShape): Readonly<Record<string, unknown>> {
  return {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: 'none',
    target_modules: projectionNames,
  }
}

/** Adapter tensors under PEFT's names. */
export function adapterInfos(shape: ModelShape, lora: LoraShape): readonly ParameterInfo[] {
  return trainableOf(shape, lora).map((info) => ({ ...info, name: `${PEFT}${info.name}` }))
}

export function withPeftNames(tensors: Tensors): Map<string, Float32Array> {
  return new Map([...tensors].map(([name, tensor]) => [`${PEFT}${name}`, tensor]))
}

export function withoutPeftNames(tensors: Tensors): Map<string, Float32Array> {
  return new Map([...tensors].map(([name, tensor]) => [name.slice(PEFT.length), tensor]))
}

/** Moments keep the layout in which they are used: only we read them. */
export function momentInfos(
  shape: ModelShape,
  lora: LoraShape | undefined,
): readonly ParameterInfo[] {
  return trainableOf(shape, lora).flatMap(({ name, shape: sizes }) =>
    (['first', 'second'] as const).map((moment) => ({
      name: `${name}.${moment}`,
      shape: [elementsOf(sizes)],
      kind: 'norm' as const,
    })),
  )
}

/** Bytes of a checkpoint's tensors. */
export function checkpointBytes(shape: ModelShape, lora: LoraShape | undefined): number {
  const infos = [
    ...parametersOf(shape),
    ...(lora === undefined ? [] : trainableOf(shape, lora)),
    ...momentInfos(shape, lora),
  ]
  return 4 * infos.reduce((sum, { shape: sizes }) => sum + elementsOf(sizes), 0)
}
