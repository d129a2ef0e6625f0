import type { Damage } from '@tiltyard/core'

import type { BlobStore } from '../blobs.ts'
import { describeFault, type Claim } from '../claims.ts'
import { readLog } from '../log.ts'
import { readPlace, recordsOf, type PlaceContent } from '../place.ts'
import { listPlaces, readOutline } from '../places.ts'
import { createRecordReader } from '../records.ts'
import type { Fault } from '../text-lines.ts'

export interface RunReading {
  readonly blobs: BlobStore
  /** The run's encoded name. */
  readonly folder: string
  readonly claims: readonly Claim[]
  /** The writer that is at work; undefined when there is none. */
  readonly living: Claim | undefined
}

/** Reads log, outline, lines and records, and tells what can't be read. A torn end is none while its writer is at it. */
export async function* damageOf(reading: RunReading): AsyncGenerator<Damage> {
  const { blobs, folder, claims, living } = reading
  const told = (faults: readonly Fault[]): readonly Damage[] =>
    faults
      .filter(({ torn }) => !torn || living === undefined)
      .map(({ where, what }) => ({ where, what }))

  yield* told((await readLog(blobs, folder, claims)).faults)
  const outlineFaults: Fault[] = []
  await readOutline(blobs, folder, outlineFaults)
  yield* told(outlineFaults)
  for (const place of await listPlaces(blobs, folder)) {
    const content = await readPlace(reading, place)
    yield* told(content.faults)
    yield* damagedRecords(blobs, content)
  }
}

async function* damagedRecords(blobs: BlobStore, content: PlaceContent): AsyncGenerator<Damage> {
  const read = createRecordReader(blobs)
  for (const [id, lines] of content.episodes) {
    for (const { records, at } of recordsOf(lines)) {
      try {
        await read(records, at)
      } catch (error) {
        const where = `${records}, byte ${at[0]}`
        yield { where, what: `a record of ${id} can't be read: ${describeFault(error)}` }
      }
    }
  }
}
