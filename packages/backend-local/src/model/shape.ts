import { z } from 'zod'

const size = z.int().positive()

/** Sizes of a Qwen3-shaped decoder. Names in brackets are those of a Hugging Face `config.json`. */
export const modelShapeSchema = z
  .strictObject({
    /** Entries of the tokenizer [vocab_size]. */
    vocabularySize: size,
    /** Width of the residual stream [hidden_size]. */
    width: size.default(128),
    /** [num_hidden_layers] */
    layers: size.default(2),
    /** Query heads [num_attention_heads]. */
    heads: size.default(4),
    /** Key/value heads; divides `heads` [num_key_value_heads]. */
    kvHeads: size.default(2),
    /** Even [head_dim]. */
    headSize: size.default(32),
    /** Inner width of the feed-forward block [intermediate_size]. */
    hidden: size.default(256),
    /** Longest sequence, in tokens [max_position_embeddings]. */
    contextWindow: size.default(1024),
    /** Base of the rotary positions [rope_theta]. */
    rotaryBase: z.number().positive().default(10_000),
    /** Added to a mean square before its root [rms_norm_eps]. */
    epsilon: z.number().positive().default(1e-6),
    /** One matrix for embedding and head [tie_word_embeddings]. */
    tiedEmbeddings: z.boolean().default(true),
  })
  .refine(({ heads, kvHeads }) => heads % kvHeads === 0, {
    error: 'kvHeads must divide heads',
    path: ['kvHeads'],
  })
  .refine(({ headSize }) => headSize % 2 === 0, {
    error: 'headSize must be even',
    path: ['headSize'],
  })

export type ModelShape = Readonly<z.output<typeof modelShapeSchema>>
export type ModelShapeInput = Readonly<z.input<typeof modelShapeSchema>>

/** Query heads that share one key/value head. */
export function queriesPerKey({ heads, kvHeads }: ModelShape): number {
  return heads / kvHeads
}
