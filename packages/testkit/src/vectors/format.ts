import { ConfigError, mistakesOf } from '@tiltyard/core'
import { z } from 'zod'

/**
 * The formats of renderer vectors: what a template gives, what a reply means, what continues, what is trained. Ids belong to one
 * vocabulary and may be left out; then texts are compared.
 */

const partSchema = z.looseObject({ type: z.enum(['text', 'image']), text: z.string().optional() })
const contentSchema = z.union([z.string(), z.null(), z.array(partSchema)])
const callSchema = z.object({
  id: z.string().optional(),
  function: z.object({
    name: z.string(),
    arguments: z.union([z.string(), z.record(z.string(), z.json())]),
  }),
})
const messageSchema = z.object({
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  content: contentSchema.optional(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(callSchema).nullish(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
})
export type VectorMessage = z.infer<typeof messageSchema>

// A record, so that the keys stay in their order: templates print tools as they are passed.
const toolSchema = z.record(z.string(), z.json())
export type VectorTool = z.infer<typeof toolSchema>

const idsSchema = z.array(z.int())
const head = {
  name: z.string(),
  /** Which layout. */
  template: z.string(),
  note: z.string().optional(),
  tools: z.array(toolSchema).nullish(),
}
const optionsSchema = z.record(z.string(), z.json())
/** Arguments of a chat template, such as `enable_thinking`. */
export type TemplateOptions = z.infer<typeof optionsSchema>

const renderSchema = z.object({
  ...head,
  options: optionsSchema,
  messages: z.array(messageSchema),
  text: z.string().optional(),
  /** Ids of the whole text with markers found anywhere. */
  tokens: idsSchema.optional(),
  /** Ids with markers only where the template wrote them, where these differ. */
  tokens_safe: idsSchema.optional(),
  /** Set: the conversation must be refused. */
  error: z.string().optional(),
})
export type RenderVector = z.infer<typeof renderSchema>

const parseSchema = z.object({
  ...head,
  /** How the prompt ended: an opened think block, a closed one, or just the header. */
  thinking: z.enum(['open', 'closed', 'auto']),
  sampled: z.string(),
  sampled_tokens: idsSchema.optional(),
  expected: z.object({
    content: z.string(),
    reasoning_content: z.string().nullable(),
    tool_calls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.json()) })),
    unparsed: z.array(z.object({ error: z.string() })),
    termination: z.enum(['stop', 'eos', 'length']),
    trailing_text: z.string().optional(),
  }),
})
export type ParseVector = z.infer<typeof parseSchema>

const prefixSchema = z.object({
  ...head,
  options: optionsSchema,
  messages: z.array(messageSchema),
  sampled: z.string(),
  /** The reply as a message, for rendering the history again. */
  assistant: messageSchema,
  new_messages: z.array(messageSchema),
  prompt_text: z.string(),
  next_prompt_text: z.string(),
  prompt_tokens: idsSchema.optional(),
  sampled_tokens: idsSchema.optional(),
  next_prompt_tokens: idsSchema.optional(),
  text_extends: z.boolean(),
  tokens_extend: z.boolean().optional(),
  appended_text: z.string(),
  appended_tokens: idsSchema.optional(),
})
export type PrefixVector = z.infer<typeof prefixSchema>

const weightsSchema = z.object({
  ...head,
  options: optionsSchema,
  messages: z.array(messageSchema),
  train_on: z.string(),
  examples: z
    .array(
      z.object({
        segments: z.array(z.object({ text: z.string(), weight: z.number() })),
        tokens: idsSchema.optional(),
        weights: z.array(z.number()).optional(),
      }),
    )
    .optional(),
  error: z.string().optional(),
})
export type WeightsVector = z.infer<typeof weightsSchema>

export type Vector =
  | { readonly kind: 'render'; readonly vector: RenderVector }
  | { readonly kind: 'parse'; readonly vector: ParseVector }
  | { readonly kind: 'prefix'; readonly vector: PrefixVector }
  | { readonly kind: 'weights'; readonly vector: WeightsVector }

/**
 * The cases of a vector file, from its parsed JSON. The keys of a case tell its kind.
 * @throws ConfigError that names the file, the case and the key at fault.
 */
export function readVectors(file: string, json: unknown): readonly Vector[] {
  if (!Array.isArray(json)) {
    throw new ConfigError(file, [{ at: '', message: 'expected a list of cases' }])
  }
  return json.map((value: unknown, index) => readVector(file, value, index))
}

function readVector(file: string, value: unknown, index: number): Vector {
  const has = (key: string) => typeof value === 'object' && value !== null && key in value
  const read = <Schema extends z.ZodType>(schema: Schema): z.output<Schema> => {
    const result = schema.safeParse(value)
    if (result.success) return result.data
    const mistakes = mistakesOf(result.error).map(({ at, message }) => ({
      at: `${index}.${at}`,
      message,
    }))
    throw new ConfigError(file, mistakes)
  }
  if (has('appended_text')) return { kind: 'prefix', vector: read(prefixSchema) }
  if (has('train_on')) return { kind: 'weights', vector: read(weightsSchema) }
  if (has('expected')) return { kind: 'parse', vector: read(parseSchema) }
  if (has('text') || has('error')) return { kind: 'render', vector: read(renderSchema) }
  throw new ConfigError(file, [
    {
      at: String(index),
      message: 'no kind of case: expected one of text, error, expected, appended_text, train_on',
    },
  ])
}
