import type { InvalidCall, JsonValue, RunnableCall } from '@tiltyard/core'
import { isJsonObject, kindOf, parseExactJson, printJson } from '@tiltyard/core/rendering'

/** What a call block came to: a call with a name, or markup that names none. */
export type CallRead =
  | { readonly kind: 'call'; readonly call: Omit<RunnableCall, 'id'> | Omit<InvalidCall, 'id'> }
  | { readonly kind: 'malformed'; readonly error: string }

/** Reads the JSON of a call block. Arguments keep the types that they were written with. */
export function readJsonCall(text: string): CallRead {
  let value: JsonValue
  try {
    value = parseExactJson(text)
  } catch (error) {
    return brokenCall(text, error instanceof Error ? error.message : String(error))
  }
  if (!isJsonObject(value)) return { kind: 'malformed', error: 'not_an_object' }
  const { name, arguments: given } = value
  if (typeof name !== 'string' || name === '') return { kind: 'malformed', error: 'missing_name' }
  if (given === undefined || given === null) return { kind: 'call', call: { name, arguments: {} } }
  const source = argumentsSource(text)
  const rawArguments = isJson(source) ? source : printJson(given)
  const args = typeof given === 'string' ? decodedOnce(given) : given
  if (isJsonObject(args)) return { kind: 'call', call: { name, arguments: args, rawArguments } }
  const error = `arguments_not_object: the arguments must be a JSON object, got ${kindOf(given)}`
  return { kind: 'call', call: { name, rawArguments, error } }
}

const nameFirst = /^\s*\{\s*"name"\s*:\s*"((?:[^"\\]|\\.)+)"\s*,\s*"arguments"\s*:\s*/

/** JSON that doesn't read, but whose name does: the environment can answer it. */
function brokenCall(text: string, reason: string): CallRead {
  const name = nameFirst.exec(text)?.[1]
  const rawArguments = argumentsSource(text)
  if (name === undefined || rawArguments === undefined) {
    return { kind: 'malformed', error: 'invalid_json' }
  }
  const error = `invalid_json: the call is no valid JSON: ${reason}`
  return { kind: 'call', call: { name: unquoted(name), rawArguments, error } }
}

/** The text of the arguments as the model wrote it: what stands last before the call's closing brace. */
function argumentsSource(text: string): string | undefined {
  const start = nameFirst.exec(text)?.[0].length
  if (start === undefined) return undefined
  const rest = text.slice(start).trimEnd()
  return (rest.endsWith('}') ? rest.slice(0, -1) : rest).trimEnd()
}

function isJson(text: string | undefined): text is string {
  if (text === undefined) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Arguments that were encoded once too often. */
function decodedOnce(value: string): JsonValue | undefined {
  try {
    return parseExactJson(value)
  } catch {
    return undefined
  }
}

function unquoted(body: string): string {
  try {
    return JSON.parse(`"${body}"`) as string
  } catch {
    return body
  }
}
