import type { EpisodeFilter } from '@tiltyard/core'

import { UNFINISHED } from './outline.ts'
import { findLines, splitLines } from './text-lines.ts'

/**
 * Parsing a line takes fifty times as long as looking into its text, and most lines of a step are not about what a filter asks for.
 * So lines are chosen by their text first. The choice may hold too much, never too little: what is left is parsed, folded and
 * compared as if nothing had been left out.
 */

/** Kind and episode of a line as it is written: `{"type":"score","id":"g3/m1/a0",…`. Undefined for groups and for what others wrote. */
function headOf(line: string): { readonly type: string; readonly id: string } | undefined {
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

/** What of a step is asked for. Groups, too, when it is everything. */
export type Wanted = { readonly id: string } | { readonly filter: EpisodeFilter } | undefined

/** Of each text the lines that an answer may take, in order. */
export function linesFor(wanted: Wanted, texts: readonly Buffer[]): readonly (readonly string[])[] {
  if (wanted === undefined) return texts.map(splitLines)
  if ('id' in wanted) return linesAbout(new Set([wanted.id]), texts)
  const named = idsNamedIn(texts, wanted.filter)
  if (named !== undefined) return linesAbout(named, texts)
  const lines = texts.map(splitLines)
  const ids = idsThatMayMatch(wanted.filter, lines.flat())
  if (ids === undefined) return lines
  return lines.map((all) => all.filter((line) => ids.has(headOf(line)?.id ?? '')))
}

/** Beyond this many, going through all lines is cheaper than looking for the lines of each episode. */
const FEW = 16

/** Ids of the episodes whose play names what the filter asks for; undefined when these are many, or it asks for no name. */
function idsNamedIn(
  texts: readonly Buffer[],
  filter: EpisodeFilter,
): ReadonlySet<string> | undefined {
  const [needle] = namesIn(filter)
  if (needle === undefined) return undefined
  const ids = new Set<string>()
  for (const text of texts) {
    const found = findLines(text, needle, FEW)
    if (found === undefined) return undefined
    for (const { line } of found) {
      const head = headOf(line)
      if (head === undefined && !line.startsWith(GROUP)) return undefined
      if (head !== undefined && isPlay(head.type)) ids.add(head.id)
    }
    if (ids.size > FEW) return undefined
  }
  return ids
}

function linesAbout(
  ids: ReadonlySet<string>,
  texts: readonly Buffer[],
): readonly (readonly string[])[] {
  return texts.map((text) =>
    [...ids]
      .flatMap((id) => findLines(text, `${ID}${id}"`) ?? [])
      .toSorted((a, b) => a.start - b.start)
      .map(({ line }) => line),
  )
}

/** Ids in the step (`g3/m1/a0`) of the episodes that a filter may want; undefined: all of them. */
function idsThatMayMatch(
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
    for (const [place, { isMet }] of wishes.entries())
      if (isMet(head.type, line)) met[place]!.add(head.id)
  }
  return new Set([...seen].filter((id) => met.every((ids) => ids.has(id))))
}

/** Names that one line about the play must hold, as it writes them: task and end are those of one and the same play. */
function namesIn({ task, end }: EpisodeFilter): readonly string[] {
  return [task, end === UNFINISHED ? undefined : end]
    .filter((name) => name !== undefined)
    .map((name) => JSON.stringify(name))
}

function isPlay(type: string): boolean {
  return type === 'episode' || type === 'call'
}

/** Something that one line of an episode must say. */
interface Wish {
  readonly isMet: (type: string, line: string) => boolean
}

function wishesOf(filter: EpisodeFilter): readonly Wish[] {
  const { minReward = -Infinity, maxReward = Infinity, trained } = filter
  const names = namesIn(filter)
  const wishes: Wish[] = []
  if (names.length > 0)
    wishes.push({
      isMet: (type, line) => isPlay(type) && names.every((name) => line.includes(name)),
    })
  if (minReward !== -Infinity || maxReward !== Infinity)
    wishes.push({
      isMet(type, line) {
        const reward = type === 'score' ? rewardIn(line) : undefined
        return reward !== undefined && reward >= minReward && reward <= maxReward
      },
    })
  if (trained !== undefined)
    wishes.push({
      isMet: (type, line) => type === 'training' && line.includes(UNTRAINED) !== trained,
    })
  return wishes
}

/** Quotes in names are escaped, so only the reward itself looks like this. */
function rewardIn(line: string): number | undefined {
  const digits = /"reward":\{"reward":([^,}]+)/.exec(line)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
