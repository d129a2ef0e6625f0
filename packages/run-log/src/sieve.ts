import type { EpisodeFilter } from '@tiltyard/core'

import { UNFINISHED } from './outline.ts'

/**
 * Parsing a line takes fifty times as long as looking into its text, and most lines of a step are not about what a filter asks for.
 * So lines are chosen by their text first. The choice may hold too much, never too little: what is left is parsed, folded and
 * compared as if nothing had been left out.
 */

/** Kind and episode of a line as it is written: `{"type":"score","id":"g3/m1/a0",…`. Undefined for groups and for what others wrote. */
export function headOf(line: string): { readonly type: string; readonly id: string } | undefined {
  if (!line.startsWith(TYPE)) return undefined
  const typeEnd = line.indexOf('"', TYPE.length)
  if (!line.startsWith(ID, typeEnd)) return undefined
  const idStart = typeEnd + ID.length
  const idEnd = line.indexOf('"', idStart)
  if (idEnd === -1) return undefined
  return { type: line.slice(TYPE.length, typeEnd), id: line.slice(idStart, idEnd) }
}

const TYPE = '{"type":"'
const ID = '","id":"'
const GROUP = '{"type":"group","group":'

/** Ids in the step (`g3/m1/a0`) of the episodes that a filter may want; undefined: all of them. */
export function idsThatMayMatch(
  filter: EpisodeFilter,
  lines: Iterable<string>,
): ReadonlySet<string> | undefined {
  const { group, task, end, minReward, maxReward } = filter
  const prefix = group === undefined ? '' : `g${group}/`
  const texts = [task, end === UNFINISHED ? undefined : end]
    .filter((text) => text !== undefined)
    .map((text) => JSON.stringify(text))
  const asksReward = minReward !== undefined || maxReward !== undefined
  if (prefix === '' && texts.length === 0 && !asksReward) return undefined

  const played = new Set<string>()
  const scored = new Set<string>()
  for (const line of lines) {
    const head = headOf(line)
    if (head === undefined) {
      if (line.startsWith(GROUP)) continue
      return undefined
    }
    if (!head.id.startsWith(prefix)) continue
    // Task and end are those of one and the same play, so one line must hold both.
    if (head.type === 'episode' || head.type === 'call') {
      if (texts.every((text) => line.includes(text))) played.add(head.id)
    } else if (asksReward && head.type === 'score') {
      const reward = rewardIn(line)
      if (
        reward !== undefined &&
        reward >= (minReward ?? -Infinity) &&
        reward <= (maxReward ?? Infinity)
      )
        scored.add(head.id)
    }
  }
  if (!asksReward) return played
  return new Set([...played].filter((id) => scored.has(id)))
}

/** Quotes in names are escaped, so only the reward itself looks like this. */
function rewardIn(line: string): number | undefined {
  const digits = /"reward":\{"reward":([^,}]+)/.exec(line)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
