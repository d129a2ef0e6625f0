import type { JsonValue, ToolCall, ToolSpec, JsonObject } from '@tiltyard/core'

import { invalidRequest, unsupportedContent } from '../errors.ts'
import { isObject } from './fields.ts'

const textTypes: ReadonlySet<JsonValue | undefined> = new Set([
  'text',
  'input_text',
  'output_text',
  'refusal',
])

/** Text of a content: a string, or parts of text joined. Null and absent are empty. */
export function contentText(content: JsonValue | undefined, param: string): string {
  if (content === undefined || content === null) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content))
    throw invalidRequest(`${param} must be a text or a list of parts`, param)
  return (content as readonly JsonValue[])
    .map((part) => {
      const type = isObject(part) ? part['type'] : undefined
      if (!isObject(part) || !textTypes.has(type))
        throw unsupportedContent(param, typeof type === 'string' ? type : 'unknown')
      const text = part['text'] ?? part['refusal']
      if (typeof text !== 'string') throw invalidRequest(`a part of ${param} has no text`, param)
      return text
    })
    .join('')
}

/** A call as a client sends it back. */
export function echoedCall(id: string, name: string, raw: string): ToolCall {
  try {
    const value: unknown = JSON.parse(raw)
    if (isObject(value)) return { id, name, arguments: value, rawArguments: raw }
  } catch {
    // Kept as it is.
  }
  return { id, name, rawArguments: raw, error: 'the arguments are no JSON object' }
}

/** A tool as the renderer knows it, from a function's name, description and schema. */
export function toolSpec(definition: JsonObject, param: string): ToolSpec {
  const { name, description, parameters } = definition
  if (typeof name !== 'string' || name === '')
    throw invalidRequest(`a tool of ${param} has no name`, param)
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    parameters: isObject(parameters) ? parameters : { type: 'object', properties: {} },
  }
}
