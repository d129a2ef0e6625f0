import type { JsonObject, JsonValue } from '@tiltyard/core'
import type { ErrorObject } from 'ajv/dist/2020.js'

import { pointerParts, valueAt } from '../universe/pointer.ts'

/** Digits of a whole number that no double holds exactly. Whoever reads calls hands such a number on as text, lest a digit be lost. */
export function isLongInteger(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && /^-?\d+$/.test(value) && !Number.isSafeInteger(Number(value))
}

/** Places where a schema wants a number and such a text stands. */
export function longIntegersAt(
  args: JsonObject,
  errors: readonly ErrorObject[],
): readonly (readonly string[])[] {
  return errors.flatMap(({ keyword, params, instancePath }) => {
    const place = pointerParts(instancePath) ?? []
    const wanted = [params['type']].flat()
    const isNumber = wanted.includes('integer') || wanted.includes('number')
    return keyword === 'type' && isNumber && isLongInteger(valueAt(args, place)) ? [place] : []
  })
}

/** The arguments as a schema can check them: with numbers, rounded, at the places. */
export function withNumbers(
  args: JsonObject,
  places: readonly (readonly string[])[],
): Record<string, JsonValue> {
  const copy = structuredClone(args) as Record<string, JsonValue>
  for (const place of places) {
    const holder = valueAt(copy, place.slice(0, -1)) as Record<string, JsonValue>
    const key = place.at(-1)!
    holder[key] = Number(holder[key])
  }
  return copy
}
