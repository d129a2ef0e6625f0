import type { JsonSchema, JsonValue, ToolSpec } from '@tiltyard/core'
import { isJsonObject, parseExactJson, pythonTrim } from '@tiltyard/core/rendering'

import { parsePythonLiteral } from './python-literal.ts'
import { admittedKinds, type Kind } from './schema-kinds.ts'

const numberPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/

/**
 * A parameter's text as the value that its schema admits. What doesn't fit stays text: nothing is lost, and the tool's own check
 * answers the model. A schema that admits text gets text, whatever it looks like.
 */
export function typedValue(text: string, tool: ToolSpec | undefined, name: string): JsonValue {
  const root: JsonSchema = tool?.parameters ?? {}
  const schema = parameterSchema(root, name)
  if (schema === undefined) return text
  const kinds = admittedKinds(schema, root)
  const trimmed = pythonTrim(text)
  if (kinds.has('null') && (trimmed === 'null' || trimmed === 'None')) return null
  const wanted = new Set([...kinds].filter((kind) => kind !== 'null'))
  const fallback = { value: text }
  if (wanted.size === 0) return (jsonContainer(trimmed) ?? fallback).value
  if (wanted.has('string')) {
    const found = jsonContainer(trimmed)
    const kind = Array.isArray(found?.value) ? 'array' : 'object'
    return (wanted.has(kind) ? (found ?? fallback) : fallback).value
  }
  return (scalar(trimmed, wanted) ?? structured(trimmed, wanted) ?? fallback).value
}

/** A value that was read; apart from the value, so that null is one. */
interface Read {
  readonly value: JsonValue
}

/** Undefined for a parameter that nothing declares. */
function parameterSchema(root: JsonSchema, name: string): JsonValue | undefined {
  const { properties, additionalProperties } = root
  if (isJsonObject(properties) && Object.hasOwn(properties, name)) return properties[name]
  return isJsonObject(additionalProperties) ? additionalProperties : undefined
}

function scalar(text: string, kinds: ReadonlySet<Kind>): Read | undefined {
  if (kinds.has('boolean') && /^(?:true|false)$/i.test(text)) {
    return { value: text.toLowerCase() === 'true' }
  }
  if (!(kinds.has('integer') || kinds.has('number')) || !numberPattern.test(text)) return undefined
  const value = Number(text)
  if (!Number.isFinite(value)) return undefined
  const rounded = Number.isInteger(value) && !Number.isSafeInteger(value)
  if (rounded && !kinds.has('number')) return undefined
  return { value: value === 0 ? 0 : value }
}

function structured(text: string, kinds: ReadonlySet<Kind>): Read | undefined {
  if (!kinds.has('object') && !kinds.has('array')) return undefined
  const read = json(text)
  if (read === undefined) return pythonContainer(text)
  const { value } = read
  return typeof value === 'string' ? (jsonContainer(value) ?? pythonContainer(value) ?? read) : read
}

function jsonContainer(text: string): Read | undefined {
  const read = json(text)
  return typeof read?.value === 'object' && read.value !== null ? read : undefined
}

function json(text: string): Read | undefined {
  try {
    return { value: parseExactJson(text) }
  } catch {
    return undefined
  }
}

function pythonContainer(text: string): Read | undefined {
  const value = /^[[{]/.test(text) ? parsePythonLiteral(text) : undefined
  return value === undefined ? undefined : { value }
}
