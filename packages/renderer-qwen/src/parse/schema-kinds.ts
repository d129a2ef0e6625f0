import type { JsonSchema, JsonValue } from '@tiltyard/core'
import { isJsonObject } from '@tiltyard/core/rendering'

/** The JSON types that a schema may admit. */
export type Kind = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'object' | 'array'

const kinds: ReadonlySet<string> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'null',
  'object',
  'array',
])

/**
 * The types that a property's schema admits, through `$ref`, `anyOf`, `oneOf`, `allOf`, type lists, `enum` and `const`. Empty when
 * it says nothing. `root` is what references point into; one that leads back to itself admits text, which loses nothing.
 */
export function admittedKinds(schema: JsonValue | undefined, root: JsonSchema): ReadonlySet<Kind> {
  return kindsOf(schema, root, new Map())
}

/** `resolved` holds the references met so far, so that each is followed once. */
function kindsOf(
  schema: JsonValue | undefined,
  root: JsonSchema,
  resolved: Map<string, ReadonlySet<Kind>>,
): ReadonlySet<Kind> {
  const found = new Set<Kind>()
  if (!isJsonObject(schema)) return found
  const { type, $ref, nullable } = schema
  for (const name of Array.isArray(type) ? (type as readonly JsonValue[]) : [type]) {
    if (isKind(name)) found.add(name)
  }
  if (found.size === 0) for (const value of literals(schema)) found.add(kindOfValue(value))

  const admit = (admitted: ReadonlySet<Kind>) => {
    for (const kind of admitted) found.add(kind)
  }
  if (typeof $ref === 'string') {
    if (!resolved.has($ref)) {
      resolved.set($ref, new Set(['string']))
      resolved.set($ref, kindsOf(resolve($ref, root), root, resolved))
    }
    admit(resolved.get($ref)!)
  }
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const options = schema[key]
    if (!Array.isArray(options)) continue
    for (const option of options as readonly JsonValue[]) admit(kindsOf(option, root, resolved))
  }
  if (found.size === 0 && 'properties' in schema) found.add('object')
  if (found.size === 0 && 'items' in schema) found.add('array')
  if (nullable === true) found.add('null')
  return found
}

function literals(schema: JsonSchema): readonly JsonValue[] {
  const listed = Array.isArray(schema['enum']) ? (schema['enum'] as readonly JsonValue[]) : []
  const single = schema['const']
  return single === undefined ? listed : [...listed, single]
}

function kindOfValue(value: JsonValue): Kind {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value as Kind
}

function isKind(name: JsonValue | undefined): name is Kind {
  return typeof name === 'string' && kinds.has(name)
}

/** The part of a tool's own parameters that a reference such as `#/$defs/Slot` names. */
function resolve(reference: string, root: JsonSchema): JsonValue | undefined {
  if (!reference.startsWith('#')) return undefined
  let current: JsonValue | undefined = root
  for (const part of reference.slice(1).split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    const holder: JsonValue | undefined = current
    if (!isJsonObject(holder) || !Object.hasOwn(holder, key)) return undefined
    current = holder[key]
  }
  return current
}
