import {
  groupId,
  type EpisodeFilter,
  type EpisodeKey,
  type GroupFilter,
  type GroupKey,
  type GroupSummary,
  type RunIndex,
  parseEpisodeId,
} from '@tiltyard/core'

import type { EpisodeLine, EpisodesAnswer, GroupLine } from '../api/answers.ts'
import { episodeLineOf } from './lines.ts'
import { BadRequest } from './problems.ts'

/** A step's groups with their episodes side by side. A group under way is there with the episodes that it has. */
export async function listGroups(
  index: RunIndex,
  run: string,
  filter: GroupFilter & { readonly split: GroupKey['split'] },
): Promise<readonly GroupLine[]> {
  const groups = new Map<number, GroupSummary>()
  const episodes = new Map<number, EpisodeLine[]>()
  // The unnamed evaluation of a filter means all of them, so others are left out here.
  const isHere = ({ evaluation }: GroupKey) => evaluation === filter.evaluation
  await Promise.all([
    (async () => {
      for await (const group of index.groups(run, filter))
        if (isHere(group.key)) groups.set(group.key.group, group)
    })(),
    (async () => {
      for await (const summary of index.episodes(run, filter)) {
        if (!isHere(summary.key)) continue
        const { group } = summary.key
        const members = episodes.get(group) ?? []
        episodes.set(group, members)
        members.push(episodeLineOf(summary))
      }
    })(),
  ])
  const numbers = [...new Set([...groups.keys(), ...episodes.keys()])].sort((a, b) => a - b)
  return numbers.map((number) => {
    const group = groups.get(number)
    const members = episodes.get(number) ?? []
    const key = { ...filter, step: filter.step ?? 0, group: number }
    return {
      id: groupId(group?.key ?? key),
      group: number,
      task: group?.task ?? members[0]?.task ?? '',
      episodes: members,
      ...(group?.reward === undefined ? {} : { reward: group.reward }),
      ...(group?.dropped === undefined ? {} : { dropped: group.dropped }),
    }
  })
}

/** A page of the episodes that a filter wants, in the index's order. */
export async function listEpisodes(
  index: RunIndex,
  run: string,
  filter: EpisodeFilter,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<EpisodesAnswer> {
  if (after !== undefined) episodeKeyOf(after)
  const episodes: EpisodeLine[] = []
  let isBefore = after !== undefined
  for await (const summary of index.episodes(run, filter)) {
    const line = episodeLineOf(summary)
    if (isBefore) isBefore = line.id !== after
    else if (episodes.length === limit) return { episodes, next: episodes.at(-1)!.id }
    else episodes.push(line)
  }
  return { episodes }
}

/** @throws BadRequest for a text that is no id. */
export function episodeKeyOf(id: string): EpisodeKey {
  const key = parseEpisodeId(id)
  if (key !== undefined) return key
  throw new BadRequest(`"${id}" is no episode's id; they look like train/step-0007/g3/m1/a0`)
}
