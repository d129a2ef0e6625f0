import type { JsonObject, JsonValue } from '@tiltyard/core'

import { invalidRequest, requestTooLarge } from '../errors.ts'

/** Reads a JSON object from a request, up to a number of bytes. @throws ApiError */
export async function readBody(
  request: Request,
  maxBytes: number,
): Promise<{ readonly text: string; readonly body: Fields }> {
  const text = await readText(request, maxBytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalidRequest('the body is not valid JSON')
  }
  if (!isObject(value)) throw invalidRequest('the body must be a JSON object')
  return { text, body: createFields(value) }
}

/** A body whose length nobody tells is counted as it comes. */
async function readText(request: Request, maxBytes: number): Promise<string> {
  const { headers } = request
  const told = headers.get('content-length')
  if (Number(told ?? 0) > maxBytes) throw requestTooLarge(maxBytes)
  if (told !== null || !headers.has('transfer-encoding')) {
    const text = await request.text()
    if (text.length > maxBytes) throw requestTooLarge(maxBytes)
    return text
  }
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength
    if (bytes > maxBytes) throw requestTooLarge(maxBytes)
    text += decoder.decode(piece, { stream: true })
  }
  return text + decoder.decode()
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Typed access to the members of a JSON object; null is absent. Each reader @throws ApiError naming the member. */
export interface Fields {
  readonly value: JsonObject
  /** Members that were given, not null, and never asked for. */
  unread(): readonly string[]
  raw(name: string): JsonValue | undefined
  number(name: string, low: number, high?: number): number | undefined
  integer(name: string, low: number, high?: number): number | undefined
  boolean(name: string): boolean | undefined
  string(name: string): string | undefined
  object(name: string): Fields | undefined
  array(name: string): readonly JsonValue[] | undefined
}

function createFields(value: JsonObject, path = ''): Fields {
  const asked = new Set<string>()
  const at = (name: string) => (path === '' ? name : `${path}.${name}`)
  const raw = (name: string) => {
    asked.add(name)
    return Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined
  }
  const wrong = (name: string, wanted: string) =>
    invalidRequest(`${at(name)} must be ${wanted}`, at(name))
  const number = (name: string, low: number, high = Number.POSITIVE_INFINITY) => {
    const found = raw(name)
    if (found === undefined) return undefined
    if (typeof found !== 'number' || found < low || found > high)
      throw wrong(
        name,
        high === Infinity ? `a number from ${low}` : `a number from ${low} to ${high}`,
      )
    return found
  }
  return {
    value,
    raw,
    number,
    unread: () => Object.keys(value).filter((name) => !asked.has(name) && value[name] !== null),
    integer(name, low, high) {
      const found = number(name, low, high)
      if (found !== undefined && !Number.isInteger(found)) throw wrong(name, 'an integer')
      return found
    },
    boolean(name) {
      const found = raw(name)
      if (found === undefined || typeof found === 'boolean') return found
      throw wrong(name, 'true or false')
    },
    string(name) {
      const found = raw(name)
      if (found === undefined || typeof found === 'string') return found
      throw wrong(name, 'a string')
    },
    object(name) {
      const found = raw(name)
      if (found === undefined) return undefined
      if (isObject(found)) return createFields(found, at(name))
      throw wrong(name, 'an object')
    },
    array(name) {
      const found = raw(name)
      if (found === undefined) return undefined
      if (Array.isArray(found)) return found as readonly JsonValue[]
      throw wrong(name, 'a list')
    },
  }
}
