import type { JsonObject, JsonValue } from '@tiltyard/core'
import { z } from 'zod'

import { jsonObject } from './json.ts'

/** Largest frame or body that is read, in bytes; what official clients take too. */
export const MAX_FRAME_BYTES = 100 * 1024 * 1024

export type ErrorCode =
  | 'INVALID_JSON'
  | 'UNKNOWN_TYPE'
  | 'VALIDATION_ERROR'
  | 'EXECUTION_ERROR'
  | 'CAPACITY_REACHED'
  | 'SESSION_ERROR'

/** An environment's answer to `reset` and `step`. */
export interface Observed {
  readonly observation: JsonObject
  /** Null: none was given with this answer. */
  readonly reward: number | null
  readonly done: boolean
  readonly metadata?: JsonObject
}

export const resetSchema = z.looseObject({
  seed: z.int().min(0).max(0xffff_ffff).nullish(),
  episode_id: z.string().max(255).nullish(),
  task_id: z.string().nullish(),
  split: z.string().nullish(),
  index: z.int().min(0).nullish(),
})

/** Which task a reset asks for; what else it carries is not read. */
export type ResetRequest = z.output<typeof resetSchema>

const metadata = jsonObject.optional()
const listTools = z.strictObject({ type: z.literal('list_tools'), metadata })
const callTool = z.strictObject({
  type: z.literal('call_tool'),
  tool_name: z.string(),
  arguments: jsonObject.default(() => ({})),
  metadata,
})
const endTurn = z.strictObject({
  type: z.literal('end_turn'),
  text: z.string().default(''),
  metadata,
})

const typedAction = z.discriminatedUnion('type', [listTools, callTool, endTurn])

/** A step's action. Without a `type` it calls a tool. */
export const actionSchema = z.preprocess(
  (value) =>
    typeof value === 'object' && value !== null && !('type' in value)
      ? { type: 'call_tool', ...value }
      : value,
  typedAction,
)

export type Action = z.output<typeof typedAction>

export const frameSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('reset'), data: resetSchema.optional() }),
  z.strictObject({ type: z.literal('step'), data: jsonObject }),
  z.strictObject({ type: z.literal('state') }),
  z.strictObject({ type: z.literal('mcp'), data: jsonObject }),
  z.strictObject({ type: z.literal('close') }),
])

export const frameTypes: readonly string[] = ['reset', 'step', 'state', 'mcp', 'close']

/** What doesn't fit, as OpenEnv's own servers word it: by kind and place. */
export function validationErrors(error: z.ZodError, at: readonly string[] = []): JsonValue[] {
  return error.issues.flatMap((issue): JsonValue[] => {
    const loc = [...at, ...issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key))]
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        type: 'extra_forbidden',
        loc: [...loc, key],
        msg: 'Extra inputs are not permitted',
      }))
    if (issue.input === undefined) return [{ type: 'missing', loc, msg: 'Field required' }]
    const type = issue.code === 'invalid_type' ? `${issue.expected}_type` : 'value_error'
    return [{ type, loc, msg: issue.message }]
  })
}

export function errorFrame(code: ErrorCode, message: string, more: JsonObject = {}): JsonObject {
  return { type: 'error', data: { message, code, ...more } }
}

/** Metadata stands beside the observation; `nested`, for clients of before June 2026, also in it. */
export function observationFrame(observed: Observed, nested: boolean): JsonObject {
  return { type: 'observation', data: observationBody(observed, nested) }
}

export function observationBody(
  { observation, reward, done, metadata: facts }: Observed,
  nested: boolean,
): JsonObject {
  if (facts === undefined) return { observation, reward, done }
  return {
    observation: nested ? { ...observation, metadata: facts } : observation,
    reward,
    done,
    metadata: facts,
  }
}
