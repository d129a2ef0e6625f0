import type { JsonObject, JsonValue, SystemMessage, ToolSpec, UserMessage } from '@tiltyard/core'
import { z } from 'zod'

import { isJsonObject, jsonObject } from '../wire/json.ts'

const messageSchema = z.looseObject({ role: z.string(), content: z.string() })
const toolSchema = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  parameters: jsonObject.optional(),
  input_schema: jsonObject.optional(),
  inputSchema: jsonObject.optional(),
})

/** The user messages that an observation holds. */
export function promptsOf(observation: JsonObject): UserMessage[] {
  return messagesOf(observation).flatMap(({ role, content }) =>
    role === 'user' ? [{ role, content }] : [],
  )
}

/** The instructions that an observation holds. */
export function withSystem(observation: JsonObject): SystemMessage | undefined {
  const found = messagesOf(observation).find(({ role }) => role === 'system')
  return found === undefined ? undefined : { role: 'system', content: found.content }
}

function messagesOf({ messages }: JsonObject) {
  return z.array(messageSchema).safeParse(messages).data ?? []
}

/** The tools that an observation says are there; undefined: it says nothing about them. */
export function toolsOf({ tools }: JsonObject): readonly ToolSpec[] | undefined {
  const read = z.array(toolSchema).safeParse(tools)
  if (!read.success) return undefined
  return read.data.map(({ name, description, parameters, input_schema, inputSchema }) => ({
    name,
    ...(description === undefined || description === null ? {} : { description }),
    parameters: parameters ?? input_schema ?? inputSchema ?? { type: 'object' },
  }))
}

/** The one tool of an environment without tools: its arguments are the action. */
export function actionTool(name: string, action: JsonObject): ToolSpec {
  const { properties = {}, title: _title, description, ...rest } = action
  const { metadata: _metadata, ...members } = isJsonObject(properties) ? properties : {}
  return {
    name,
    description:
      typeof description === 'string' ? description : 'Takes one step in the environment.',
    parameters: { ...rest, type: 'object', properties: members },
  }
}

/** What a policy is shown of a result: its text parts, its `data`, or itself as JSON. A single text stands without its name. */
export function resultText(result: JsonValue): string {
  if (typeof result === 'string') return result
  if (!isJsonObject(result)) return JSON.stringify(result)
  const { content, data } = result
  const parts = z
    .array(z.looseObject({ type: z.literal('text'), text: z.string() }))
    .safeParse(content)
  if (parts.success && parts.data.length > 0) return parts.data.map(({ text }) => text).join('\n')
  if (data !== undefined && data !== null)
    return typeof data === 'string' ? data : JSON.stringify(data)
  const { metadata: _, ...members } = result
  const values = Object.values(members)
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : JSON.stringify(members)
}
