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
const UNTRAINED = ',"untrained":"'

/** Ids in the step (`g3/m1/a0`) of the episodes that a filter may want; undefined: all of them. */
export function idsThatMayMatch(
  filter: EpisodeFilter,
  lines: Iterable<string>,
): ReadonlySet<string> | undefined {
  const { group } = filter
  const prefix = group === undefined ? '' : `g${group}/`
  const wishes = wishesOf(filter)
  if (prefix === '' && wishes.length === 0) return undefined

  const seen = new Set<string>()
  const met = wishes.map(() => new Set<string>())
  for (const line of lines) {
    const head = headOf(line)
    if (head === undefined) {
      if (line.startsWith(GROUP)) continue
      return undefined
    }
    if (!head.id.startsWith(prefix)) continue
    seen.add(head.id)
    for (const [place, { types, isMet }] of wishes.entries())
      if (types.includes(head.type) && isMet(line)) met[place]!.add(head.id)
  }
  return new Set([...seen].filter((id) => met.every((ids) => ids.has(id))))
}

/** Something that one line of an episode must say. */
interface Wish {
  readonly types: readonly string[]
  readonly isMet: (line: string) => boolean
}

function wishesOf({
  task,
  end,
  minReward = -Infinity,
  maxReward = Infinity,
  trained,
}: EpisodeFilter): readonly Wish[] {
  const wishes: Wish[] = []
  // Task and end are those of one and the same play, so one line must hold both.
  const texts = [task, end === UNFINISHED ? undefined : end]
    .filter((text) => text !== undefined)
    .map((text) => JSON.stringify(text))
  if (texts.length > 0) {
    const isMet = (line: string) => texts.every((text) => line.includes(text))
    wishes.push({ types: ['episode', 'call'], isMet })
  }
  if (minReward !== -Infinity || maxReward !== Infinity) {
    const isMet = (line: string) => {
      const reward = rewardIn(line)
      return reward !== undefined && reward >= minReward && reward <= maxReward
    }
    wishes.push({ types: ['score'], isMet })
  }
  if (trained !== undefined)
    wishes.push({ types: ['training'], isMet: (line) => line.includes(UNTRAINED) !== trained })
  return wishes
}

/** Quotes in names are escaped, so only the reward itself looks like this. */
function rewardIn(line: string): number | undefined {
  const digits = /"reward":\{"reward":([^,}]+)/.exec(line)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
