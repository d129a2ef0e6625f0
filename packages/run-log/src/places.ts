import type { EpisodeFilter, Split } from '@tiltyard/core'

import type { BlobStore } from './blobs.ts'
import {
  comparePlaces,
  currentParts,
  placeFolder,
  stepOfFolder,
  type GroupPlace,
} from './layout.ts'
import { listParts } from './log.ts'
import { decodeName, encodeName } from './names.ts'
import {
  idleEntry,
  mayHold,
  outlineEntrySchema,
  type OutlineEntry,
  type ValueFilter,
} from './outline.ts'
import { readLines, type Fault } from './text-lines.ts'

export type PlaceFilter = Pick<EpisodeFilter, 'split' | 'evaluation' | 'step'>

/** The groups of runs of a run that a filter asks for, in order. */
export async function listPlaces(
  blobs: BlobStore,
  folder: string,
  filter: PlaceFilter = {},
): Promise<readonly GroupPlace[]> {
  const splits: readonly Split[] = filter.split === undefined ? ['train', 'eval'] : [filter.split]
  const found = await Promise.all(
    splits.map((split) => placesOfSplit(blobs, folder, split, filter.evaluation, filter.step)),
  )
  return found.flat().toSorted(comparePlaces)
}

async function placesOfSplit(
  blobs: BlobStore,
  folder: string,
  split: Split,
  evaluation: string | undefined,
  step: number | undefined,
): Promise<readonly GroupPlace[]> {
  if (evaluation !== undefined) {
    const named = `${folder}/${split}/${encodeName('evaluation', evaluation)}`
    const { folders } = await blobs.list(named)
    return stepsOf(folders, step).map((found) => ({ split, evaluation, step: found }))
  }
  const { folders } = await blobs.list(`${folder}/${split}`)
  const places: GroupPlace[] = stepsOf(folders, step).map((found) => ({ split, step: found }))
  for (const name of folders) {
    const decoded = stepOfFolder(name) === undefined ? decodeName(name) : undefined
    if (decoded === undefined) continue
    places.push(...(await placesOfSplit(blobs, folder, split, decoded, step)))
  }
  return places
}

function stepsOf(folders: readonly string[], wanted: number | undefined): readonly number[] {
  return folders
    .map(stepOfFolder)
    .filter((step): step is number => step !== undefined && (wanted ?? step) === step)
}

/** Leaves out the places that the outline rules out. A place that it doesn't know stays. */
export async function placesThatMayHold(
  blobs: BlobStore,
  folder: string,
  places: readonly GroupPlace[],
  filter: EpisodeFilter,
): Promise<readonly GroupPlace[]> {
  const asksValues = [filter.task, filter.end, filter.minReward, filter.maxReward].some(
    (value) => value !== undefined,
  )
  if (!asksValues || places.length < 2) return places
  const faults: Fault[] = []
  const entries = await readOutline(blobs, folder, faults, filter)
  if (faults.some(({ torn }) => !torn)) return places
  return places.filter((place) => {
    const known = entries.get(placeFolder(place))
    return known === undefined || mayHold(known, filter)
  })
}

/** Entries by place. With a filter: every place, but only the entries that may speak for it. */
export async function readOutline(
  blobs: BlobStore,
  folder: string,
  faults: Fault[],
  filter?: ValueFilter,
): Promise<ReadonlyMap<string, readonly OutlineEntry[]>> {
  const parts = currentParts(await listParts(blobs, `${folder}/outline`))
  const entries = new Map<string, OutlineEntry[]>()
  const entriesOf = (place: string) => {
    const known = entries.get(place) ?? []
    entries.set(place, known)
    return known
  }
  const isIdle = filter === undefined ? () => undefined : idleEntry(filter)
  for await (const { part, lines } of readLines(blobs, `${folder}/outline`, parts, faults)) {
    for (const line of lines) {
      const idle = isIdle(line)
      if (idle !== undefined) {
        entriesOf(idle)
        continue
      }
      try {
        const entry = outlineEntrySchema.parse(JSON.parse(line))
        entriesOf(entry.place).push(entry)
      } catch {
        const where = `${folder}/outline/${part.name}`
        faults.push({ where, what: 'unreadable line', torn: false })
      }
    }
  }
  return entries
}
