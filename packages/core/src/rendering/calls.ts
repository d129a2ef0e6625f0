import type { JsonObject, JsonValue } from '../json.ts'
import { isRunnable, type ToolCall } from '../messages.ts'
import { parseExactJson } from './json.ts'

/**
 * The arguments of a call as JSON text, as OpenAI's messages carry them: the model's own text when that is a JSON object (it keeps
 * every digit), else printed from the values. Of a call with invalid arguments: what was written.
 */
export function argumentsText(call: ToolCall): string {
  if (!isRunnable(call)) return call.rawArguments
  return isJsonObjectText(call.rawArguments) ? call.rawArguments : JSON.stringify(call.arguments)
}

/** Whether a text is meant as a JSON object. */
export function isJsonObjectText(text: string | undefined): text is string {
  return text !== undefined && /^\s*\{/.test(text)
}

/**
 * A call from a name and OpenAI's `arguments`, text or object. Text that is no JSON object makes a call that isn't run and says
 * why.
 */
export function toolCall(id: string, name: string, given: string | JsonObject): ToolCall {
  if (typeof given !== 'string') return { id, name, arguments: given }
  if (given.trim() === '') return { id, name, arguments: {} }
  let value: JsonValue
  try {
    value = parseExactJson(given)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return {
      id,
      name,
      rawArguments: given,
      error: `invalid_json: the arguments are no JSON: ${reason}`,
    }
  }
  if (isJsonObject(value)) return { id, name, arguments: value, rawArguments: given }
  return {
    id,
    name,
    rawArguments: given,
    error: `arguments_not_object: the arguments must be a JSON object, got ${kindOf(value)}`,
  }
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The kind of a JSON value, for errors that a model reads. */
export function kindOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
