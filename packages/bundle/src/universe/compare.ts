import type { JsonValue } from '@tiltyard/core'

import { type Members, overlayOf } from './overlay.ts'
import { pointerOf } from './pointer.ts'
import type { Change } from './universe.ts'

/** Whether two JSON values are equal, the order of keys apart. Shared parts cost nothing. */
export function sameJson(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  return firstChanges(left, right, 1).length === 0
}

/** Where `after` differs from `before`, as deep as both go. Shared parts cost nothing. */
export function changesBetween(before: JsonValue, after: JsonValue): readonly Change[] {
  return firstChanges(before, after, Infinity)
}

function firstChanges(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  most: number,
): readonly Change[] {
  const found: Change[] = []
  const path: string[] = []
  const walk = (left: JsonValue | undefined, right: JsonValue | undefined) => {
    if (left === right || found.length >= most) return
    const pair = [left, right] as const
    if (!bothHaveMembers(pair)) {
      found.push({
        path: pointerOf(path),
        ...(left === undefined ? {} : { before: left }),
        ...(right === undefined ? {} : { after: right }),
      })
      return
    }
    const [members, others] = pair
    for (const key of keysToCompare(members, others)) {
      path.push(key)
      walk(own(members, key), own(others, key))
      path.pop()
    }
  }
  walk(before, after)
  return found
}

/** Of two wide objects that grew from one, the members that were changed, in their keys' order; else all of both. */
function keysToCompare(left: Members, right: Members): Iterable<string> {
  const [overLeft, overRight] = [overlayOf(left), overlayOf(right)]
  if ((overLeft?.base ?? left) === (overRight?.base ?? right))
    return [
      ...new Set([...(overLeft?.edits.keys() ?? []), ...(overRight?.edits.keys() ?? [])]),
    ].sort()
  return new Set([...Object.keys(left), ...Object.keys(right)])
}

function own(members: Members, key: string): JsonValue | undefined {
  return Object.hasOwn(members, key) ? members[key] : undefined
}

/** Both objects, or both lists: what can be compared member by member. */
function bothHaveMembers(
  pair: readonly [JsonValue | undefined, JsonValue | undefined],
): pair is readonly [Members, Members] {
  const [left, right] = pair
  return (
    typeof left === 'object' &&
    typeof right === 'object' &&
    left !== null &&
    right !== null &&
    Array.isArray(left) === Array.isArray(right)
  )
}
