import {
  type JsonObject,
  type JsonSchema,
  type JsonValue,
  mistakesOf,
  nearest,
} from '@tiltyard/core'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { z } from 'zod'

import type { ToolDefinition } from '../author/tool.ts'
import type { CheckedArguments, LoadedTool } from '../bundle.ts'
import { pointerParts, valueAt } from '../universe/pointer.ts'
import { isLongInteger, longIntegersAt, withNumbers } from './long-integers.ts'

const toolName = /^[\w-]{1,64}$/

/** A tool ready to be played. @throws Error with a sentence for its author when its definition is wrong. */
export function loadTool(definition: ToolDefinition): LoadedTool {
  const { name, description, parameters } = definition
  if (typeof name !== 'string' || !toolName.test(name))
    throw new Error(`a tool's name has 1 to 64 letters, digits, "_" and "-"; "${name}" isn't one`)
  if (typeof definition.run !== 'function') throw new Error(`tool "${name}" has no function "run"`)
  const zod = parameters instanceof z.ZodType ? parameters : undefined
  const schema = zod === undefined ? (parameters as JsonSchema) : zodParameters(name, zod)
  if (typeof schema !== 'object' || schema['type'] !== 'object')
    throw new Error(
      `tool "${name}": "parameters" must be a zod object or a JSON Schema of type "object"`,
    )
  const validate =
    definition.ownChecks === true
      ? undefined
      : zod === undefined
        ? schemaCheck(name, schema)
        : zodCheck(zod)
  return {
    spec: { name, ...(description === undefined ? {} : { description }), parameters: schema },
    definition,
    check: async (args) => {
      if (validate === undefined) return { args }
      const surplus = surplusArgument(args, schema)
      return surplus === undefined ? await validate(args) : { error: surplus }
    },
  }
}

/** What zod prints, without what only tells that an integer is safe. */
function zodParameters(name: string, schema: z.ZodType): JsonSchema {
  try {
    const { $schema: _, ...printed } = z.toJSONSchema(schema, {
      io: 'input',
      override: ({ jsonSchema }) => {
        if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
        if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      },
    })
    return printed as JsonSchema
  } catch (cause) {
    throw new Error(
      `tool "${name}": its parameters have no JSON Schema: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
}

function zodCheck(schema: z.ZodType): (args: JsonObject) => Promise<CheckedArguments> {
  return async (args) => {
    const result = await schema.safeParseAsync(args)
    if (result.success) return { args: result.data as JsonObject }
    return {
      error: mistakesOf(result.error)
        .map(({ at, message }) =>
          complaint(at, isLongInteger(valueAt(args, at.split('.'))) ? BEYOND : message),
        )
        .join('; '),
    }
  }
}

/** What a zod schema says of an integer that came as text would speak of text, which the model did not write. */
const BEYOND = 'the integer has more digits than this tool can take'

function schemaCheck(
  name: string,
  schema: JsonSchema,
): (args: JsonObject) => Promise<CheckedArguments> {
  const endless = endlessReference(schema)
  if (endless !== undefined)
    throw new Error(`tool "${name}": its JSON Schema refers to itself without end, at "${endless}"`)
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  let validate: ReturnType<typeof ajv.compile>
  try {
    validate = ajv.compile(schema)
  } catch (cause) {
    throw new Error(
      `tool "${name}": its JSON Schema is broken: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    )
  }
  return async (args) => {
    if (validate(args)) return { args: structuredClone(args) }
    const long = longIntegersAt(args, validate.errors ?? [])
    if (long.length > 0 && validate(withNumbers(args, long))) return { args: structuredClone(args) }
    return { error: (validate.errors ?? []).map(schemaComplaint).join('; ') }
  }
}

/** A `$ref` that leads back to itself through nothing but references. */
function endlessReference(root: JsonSchema): string | undefined {
  const search = (value: JsonValue): string | undefined => {
    if (typeof value !== 'object' || value === null) return undefined
    const seen = new Set<JsonValue>()
    let at: JsonValue | undefined = value
    for (let ref = referenceOf(at); ref !== undefined; ref = referenceOf(at)) {
      if (seen.has(at!)) return ref
      seen.add(at!)
      at = valueAt(root, pointerParts(ref.slice(1)) ?? [])
    }
    for (const member of Object.values(value) as readonly JsonValue[]) {
      const found = search(member)
      if (found !== undefined) return found
    }
    return undefined
  }
  return search(root)
}

/** The local reference that a schema is, or undefined. */
function referenceOf(schema: JsonValue | undefined): string | undefined {
  if (typeof schema !== 'object' || schema === null || !('$ref' in schema)) return undefined
  const { $ref } = schema
  return typeof $ref === 'string' && $ref.startsWith('#') ? $ref : undefined
}

function schemaComplaint({ instancePath, message, params }: ErrorObject): string {
  const at = instancePath.slice(1).replaceAll('/', '.')
  const allowed: unknown = params['allowedValues']
  const values = Array.isArray(allowed)
    ? `: ${allowed.map((value) => JSON.stringify(value)).join(', ')}`
    : ''
  return complaint(at, `${message ?? 'is wrong'}${values}`)
}

function complaint(at: string, message: string): string {
  return at === '' ? message : `argument "${at}": ${message}`
}

/** Unless the schema speaks of further arguments itself, one that it doesn't name is a mistake. */
function surplusArgument(args: JsonObject, schema: JsonSchema): string | undefined {
  if ('additionalProperties' in schema && schema['additionalProperties'] !== false) return undefined
  if ('patternProperties' in schema || '$ref' in schema || 'allOf' in schema || 'anyOf' in schema)
    return undefined
  const known = Object.keys((schema['properties'] ?? {}) as JsonObject)
  const surplus = Object.keys(args).find((key) => !known.includes(key))
  if (surplus === undefined) return undefined
  const near = nearest(surplus, known)
  const hint =
    near === undefined ? `; there is ${known.join(', ') || 'none'}` : `; did you mean "${near}"?`
  return `unknown argument "${surplus}"${hint}`
}
