import { z } from 'zod'

import { cutReasons } from '../end.ts'
import type { JsonObject, JsonValue } from '../json.ts'

/** Pieces that several records share. */

/** What a schema gives, as our interfaces write it: read-only, and absent members are absent. */
export type Recorded<T> = [JsonValue] extends [T] ? T : RecordedMember<T>
type RecordedMember<T> = T extends Int32Array | Float32Array
  ? T
  : T extends object
    ? { readonly [Key in keyof T]: Recorded<Exclude<T[Key], undefined>> }
    : T

/** The schema, typed as what it gives is written elsewhere. */
export function recorded<Schema extends z.ZodType>(
  schema: Schema,
): z.ZodType<Recorded<z.output<Schema>>> {
  return schema as unknown as z.ZodType<Recorded<z.output<Schema>>>
}

export const jsonValueSchema: z.ZodType<JsonValue> = z.json()
export const jsonObjectSchema: z.ZodType<JsonObject> = z.record(z.string(), jsonValueSchema)

export const errorSummarySchema = z.object({
  name: z.string(),
  code: z.string().optional(),
  message: z.string(),
})

export const endReasonSchema = recorded(
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('completed') }),
    z.object({ kind: z.literal('cut'), by: z.enum(cutReasons) }),
    z.object({
      kind: z.literal('failed'),
      phase: z.enum([
        'open',
        'start',
        'render',
        'sample',
        'tool',
        'agent',
        'end',
        'score',
        'record',
        'close',
      ]),
      error: errorSummarySchema,
    }),
    z.object({ kind: z.literal('cancelled') }),
  ]),
)

export const scoreSchema = recorded(
  z.union([
    z.object({ value: z.number(), note: z.string().optional() }),
    z.object({ unscored: z.string() }),
  ]),
)

export const rewardSchema = recorded(
  z.union([z.object({ reward: z.number() }), z.object({ unscored: z.string() })]),
)

const textPartSchema = z.object({ type: z.literal('text'), text: z.string() })
/** Images are recorded by size, not by bytes. */
const imagePartSchema = z.object({
  type: z.literal('image'),
  format: z.enum(['png', 'jpeg']),
  width: z.number(),
  height: z.number(),
  bytes: z.number(),
})
const contentSchema = z.union([z.string(), z.array(z.union([textPartSchema, imagePartSchema]))])

const toolCallSchema = z.union([
  z.object({
    id: z.string(),
    name: z.string(),
    arguments: jsonObjectSchema,
    rawArguments: z.string().optional(),
  }),
  z.object({ id: z.string(), name: z.string(), rawArguments: z.string(), error: z.string() }),
])

/** A message as it is recorded. */
export const recordedMessageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: contentSchema }),
  z.object({ role: z.literal('user'), content: contentSchema }),
  z.object({
    role: z.literal('assistant'),
    content: z.string(),
    reasoning: z.string().optional(),
    toolCalls: z.array(toolCallSchema).optional(),
    /** Index of the reply in the episode, for messages that were sampled. */
    reply: z.int().optional(),
  }),
  z.object({
    role: z.literal('tool'),
    content: contentSchema,
    toolCallId: z.string(),
    name: z.string().optional(),
  }),
])
export type RecordedMessage = Recorded<z.infer<typeof recordedMessageSchema>>

export const toolSpecSchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  parameters: jsonObjectSchema,
})

export const policyVersionSchema = z.object({ id: z.string(), step: z.int() })
export const int32Schema: z.ZodType<Int32Array> = z.instanceof(Int32Array)
export const float32Schema: z.ZodType<Float32Array> = z.instanceof(Float32Array)

/** A number that a run may lack or that went wrong: JSON has no NaN, so such a value is null and its name is flagged. */
export const metricsSchema = z.record(z.string(), z.number().nullable())
