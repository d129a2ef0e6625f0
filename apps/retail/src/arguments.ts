/**
 * Arguments as the benchmark's Python takes them: it checks names, and no types. A model that writes a wrong type is told what
 * Python would tell it.
 */
import { ToolError } from '@tiltyard/bundle'
import type { JsonObject, JsonValue } from '@tiltyard/core'
import { pythonText } from '@tiltyard/core/rendering'

/** @throws ToolError for an argument too many or too few. */
export function checkNames(tool: string, args: JsonObject, names: readonly string[]): void {
  const where = `RetailTools.${tool}()`
  const surplus = Object.keys(args).find((name) => !names.includes(name))
  if (surplus !== undefined)
    throw new ToolError(`${where} got an unexpected keyword argument '${surplus}'`)
  const missing = names.filter((name) => !Object.hasOwn(args, name)).map((name) => `'${name}'`)
  if (missing.length > 0)
    throw new ToolError(
      `${where} missing ${missing.length} required positional argument${missing.length === 1 ? '' : 's'}: ${enumerated(missing)}`,
    )
}

function enumerated(names: readonly string[]): string {
  if (names.length <= 2) return names.join(' and ')
  return `${names.slice(0, -1).join(', ')}, and ${names.at(-1)!}`
}

/** A value that is looked up in a table; undefined for one that can't be there. */
export function keyOf(value: JsonValue): string | undefined {
  if (typeof value === 'object' && value !== null)
    throw new ToolError(`unhashable type: '${typeName(value)}'`)
  return typeof value === 'string' ? value : undefined
}

/** What a `for` goes through: a list's entries, a text's characters. */
export function entriesOf(value: JsonValue): readonly JsonValue[] {
  if (typeof value === 'string') return Array.from(value)
  if (isList(value)) return value
  throw new ToolError(`'${typeName(value)}' object is not iterable`)
}

/** A text whose case doesn't count. */
export function lowerCase(value: JsonValue): string {
  if (typeof value === 'string') return value.toLowerCase()
  throw new ToolError(`'${typeName(value)}' object has no attribute 'lower'`)
}

/** A field of a record, which the benchmark checks when it makes the record. */
export function textField(name: string, value: JsonValue): string {
  if (typeof value === 'string') return value
  throw new ToolError(`${name}: Input should be a valid string, not '${typeName(value)}'`)
}

export function shown(value: JsonValue): string {
  return pythonText(value)
}

function typeName(value: JsonValue): string {
  if (value === null) return 'NoneType'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float'
  if (typeof value === 'string') return 'str'
  return isList(value) ? 'list' : 'dict'
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}
