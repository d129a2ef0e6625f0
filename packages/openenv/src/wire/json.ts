import type { JsonObject } from '@tiltyard/core'
import { z } from 'zod'

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An object of what came out of JSON.parse: what lies deeper is JSON already. */
export const jsonObject = z.custom<JsonObject>(isJsonObject, 'expected an object')
