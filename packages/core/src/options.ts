import type { z } from 'zod'

import { ConfigError, type Mistake } from './errors.ts'

/**
 * Checks options where they enter. Use `z.strictObject`, so that an unknown key is a mistake that names the nearest right one.
 * @throws ConfigError with every mistake and its path.
 */
export function checkOptions<Schema extends z.ZodType>(
  what: string,
  schema: Schema,
  value: unknown,
): z.output<Schema> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new ConfigError(what, mistakesOf(result.error, schema))
}

/** The mistakes of a zod error as paths and sentences. */
export function mistakesOf(error: z.ZodError, schema?: z.ZodType): readonly Mistake[] {
  return error.issues.flatMap((issue) => {
    const at = issue.path.map(String).join('.')
    if (issue.code !== 'unrecognized_keys') return [{ at, message: issue.message }]
    const known = schema === undefined ? [] : keysAt(schema, issue.path)
    return issue.keys.map((key) => ({ at, message: unknownName('key', key, known) }))
  })
}

/** Whether an address has no user, query or fragment, where a secret could stand: whatever fails to reach it tells all of it. */
export function isPlainAddress(address: string): boolean {
  return !/\/\/[^/]*@|[?#]/.test(address)
}

/** `unknown key "max_concurent"; did you mean "maxConcurrent"?` or, when nothing is near, the list of what exists. */
export function unknownName(kind: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  if (near !== undefined) return `unknown ${kind} "${name}"; did you mean "${near}"?`
  if (known.length === 0) return `unknown ${kind} "${name}"`
  return `unknown ${kind} "${name}"; there is ${known.join(', ')}`
}

/** The name that a person most likely meant: fewest edits, case and separators apart, at most a third of the longer name. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name)
  let best: { readonly candidate: string; readonly distance: number } | undefined
  for (const candidate of known) {
    const distance = editDistance(wanted, plain(candidate))
    const bound = Math.max(1, Math.floor(Math.max(wanted.length, candidate.length) / 3))
    if (distance <= bound && (best === undefined || distance < best.distance))
      best = { candidate, distance }
  }
  return best?.candidate
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_ .]/g, '')
}

/** Insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let before: readonly number[] = []
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i += 1) {
    const current = [i]
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = previous[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      const swapped =
        from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1] ? before[j - 2]! + 1 : replaced
      current.push(Math.min(replaced, swapped, previous[j]! + 1, current[j - 1]! + 1))
    }
    before = previous
    previous = current
  }
  return previous[to.length]!
}

function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let current: unknown = schema
  for (const key of path) current = memberOf(unwrap(current), key)
  const object = unwrap(current)
  return hasShape(object) ? Object.keys(object.shape) : []
}

function memberOf(schema: unknown, key: PropertyKey): unknown {
  if (hasShape(schema)) return schema.shape[String(key)]
  if (typeof schema === 'object' && schema !== null && 'element' in schema) return schema.element
  if (typeof schema === 'object' && schema !== null && 'valueType' in schema)
    return schema.valueType
  return undefined
}

/** Through optional, nullable and default; a list stays a list, though zod gives it an `unwrap` too. */
function unwrap(schema: unknown): unknown {
  let current = schema
  while (
    typeof current === 'object' &&
    current !== null &&
    !('element' in current) &&
    'unwrap' in current &&
    typeof current.unwrap === 'function'
  ) {
    current = current.unwrap()
  }
  return current
}

function hasShape(value: unknown): value is { readonly shape: Readonly<Record<string, unknown>> } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'shape' in value &&
    typeof value.shape === 'object'
  )
}
