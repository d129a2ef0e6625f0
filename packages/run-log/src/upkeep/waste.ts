import type { Collected } from '@tiltyard/core'

import type { BlobStore } from '../blobs.ts'
import { visibility } from '../claims.ts'
import { currentParts, placeFolder, type GroupPlace, type Part } from '../layout.ts'
import { listParts } from '../log.ts'
import { readPlace } from '../place.ts'
import type { RunReading } from './damage.ts'

/** A blob that no reader sees. */
export interface Waste {
  readonly key: string
  readonly bytes: number
}

/** Half-written blobs of a store begin with this, and may be under way while they are young. */
const TEMPORARY = '.tmp-'
const TEMPORARY_MS = 3_600_000

export async function wasteOf(
  reading: RunReading & { readonly places: readonly GroupPlace[] },
): Promise<readonly Waste[]> {
  const { blobs, folder, places } = reading
  const waste: Waste[] = []
  for (const name of ['claims', 'alive', 'log', 'outline'])
    waste.push(...(await temporaries(blobs, `${folder}/${name}`)))
  waste.push(...(await temporaries(blobs, folder)))
  for (const name of ['log', 'outline']) {
    const where = `${folder}/${name}`
    const parts = await listParts(blobs, where)
    const current = new Set(currentParts(parts))
    waste.push(...parts.filter((part) => !current.has(part)).map((part) => wasteIn(where, part)))
  }
  for (const place of places) {
    const where = `${folder}/${placeFolder(place)}`
    waste.push(...(await temporaries(blobs, where)))
    waste.push(...(await wasteOfPlace(reading, place)).map((part) => wasteIn(where, part)))
  }
  return waste
}

/** What a resume dropped, records whose lines a crash prevented, and the journal once all its episodes have ended. */
async function wasteOfPlace(reading: RunReading, place: GroupPlace): Promise<readonly Part[]> {
  const { blobs, folder, claims, living } = reading
  const isVisible = visibility(claims)
  const parts = await listParts(blobs, `${folder}/${placeFolder(place)}`)
  const names = new Set(parts.map(({ name }) => name))
  const { episodes } = await readPlace(reading, place)
  const isJournalNeeded = [...episodes.values()].some(
    ({ calls, episode }) => calls.length > 0 && episode === undefined,
  )
  return parts.filter(({ name, writer, kind, ending }) => {
    if (!isVisible(writer.epoch, place.step)) return true
    if (writer.epoch === living?.epoch) return false
    if (ending === '.jsonl.gz' && !names.has(name.replace(/\.gz$/, ''))) return true
    return kind === 'calls' && !isJournalNeeded
  })
}

async function temporaries(blobs: BlobStore, folder: string): Promise<readonly Waste[]> {
  const listing = await blobs.list(folder)
  return listing.blobs
    .filter(({ name, age }) => name.startsWith(TEMPORARY) && age > TEMPORARY_MS)
    .map((info) => wasteIn(folder, info))
}

export async function allBelow(blobs: BlobStore, folder: string): Promise<readonly Waste[]> {
  const listing = await blobs.list(folder)
  const found: Waste[] = listing.blobs.map((info) => wasteIn(folder, info))
  for (const name of listing.folders) found.push(...(await allBelow(blobs, `${folder}/${name}`)))
  return found
}

export function sumOf(waste: readonly Waste[]): Collected {
  return { blobs: waste.length, bytes: waste.reduce((sum, { bytes }) => sum + bytes, 0) }
}

function wasteIn(folder: string, { name, bytes }: { name: string; bytes: number }): Waste {
  return { key: `${folder}/${name}`, bytes }
}
