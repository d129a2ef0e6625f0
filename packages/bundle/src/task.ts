import type { JsonObject } from '@tiltyard/core'
import { z } from 'zod'

const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json())

/** Longest id of a task, in UTF-16 units. */
export const MAX_TASK_ID_CHARS = 200

const promptPartSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  /** A PNG or JPEG file of the bundle. */
  z.strictObject({ type: z.literal('image'), file: z.string().min(1) }),
])

/** One user prompt. `system` and `tools` stand from this turn on; absent, those of the turn before stay. */
export const turnSchema = z.strictObject({
  prompt: z.union([z.string(), z.array(promptPartSchema).min(1)], {
    error:
      'expected a text, or a list of { "type": "text", "text" } and { "type": "image", "file" }',
  }),
  /** A text file of the bundle, or the text itself. Empty text: no system prompt. */
  system: z
    .union([z.string().min(1), z.strictObject({ text: z.string() })], {
      error: 'expected the path of a text file, or { "text": the text itself }',
    })
    .optional(),
  /** Names of the tools that may be called, in the order in which they are shown. */
  tools: z.array(z.string()).optional(),
})

const goldSchema = z.strictObject({
  /** What a perfect agent calls, in order. */
  calls: z.array(z.strictObject({ name: z.string(), arguments: jsonObject })),
  /** What it then says: one text per turn. Default: nothing. */
  replies: z.array(z.string()).optional(),
})

const startPatchSchema = z.strictObject({ path: z.string(), value: z.json().optional() })

/** A task as its author writes it. Unknown keys are mistakes; `meta` takes anything. */
export const taskSchema = z.strictObject({
  /** Unique in the bundle. Any text. */
  id: z.string().min(1).max(MAX_TASK_ID_CHARS),
  /** At least one, unless a user gives them. */
  turns: z.array(turnSchema).min(1).optional(),
  /** Who gives the prompts instead: a user of the module, with settings of its own. */
  user: z.strictObject({ use: z.string(), options: jsonObject.optional() }).optional(),
  /** Changes to the universe before the episode begins. */
  start: z.array(startPatchSchema).optional(),
  /** Known to verifiers only. */
  gold: goldSchema.optional(),
  /** What verifiers compare with. Known to them only. */
  expect: jsonObject.optional(),
  /** What time it is for the tools. Default: the manifest's. */
  clock: z.iso.datetime().optional(),
  tags: z.array(z.string()).optional(),
  /** The scoring steps that it records. Default: all of the bundle. */
  steps: z.array(z.string()).min(1).optional(),
  /** Anything; tools and verifiers may read it. */
  meta: jsonObject.optional(),
})

export type TaskInput = z.input<typeof taskSchema>
/** A checked task. */
export type Task = z.output<typeof taskSchema>
export type TurnInput = z.input<typeof turnSchema>
