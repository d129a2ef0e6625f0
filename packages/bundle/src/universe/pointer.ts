import type { JsonValue } from '@tiltyard/core'

/** The parts of a JSON Pointer (RFC 6901), or undefined when the text is none. */
export function pointerParts(pointer: string): readonly string[] | undefined {
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

export function pointerOf(parts: readonly (string | number)[]): string {
  return parts
    .map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('')
}

/** The value at the parts, or undefined. Only own members count. */
export function valueAt(root: JsonValue, parts: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = root
  for (const part of parts) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Readonly<Record<string, JsonValue>>)[part]
  }
  return value
}
