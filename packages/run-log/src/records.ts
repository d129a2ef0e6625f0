import {
  NotFoundError,
  episodeId,
  parseRecord,
  runEventSchema,
  type CallEvent,
  type EpisodeEvent,
  type EpisodeKey,
  type EpisodeRecord,
  type EpisodeSummary,
  type FailureEvent,
  type RunEvent,
  type ScoreEvent,
  type TrainingEvent,
} from '@tiltyard/core'

import type { BlobStore } from './blobs.ts'
import { unpack } from './blocks.ts'
import { describeFault } from './claims.ts'
import { localId, type At } from './lines.ts'
import { readPlace, recordsOf, type EpisodeLines, type PlaceReading } from './place.ts'
import { episodeSummary } from './summaries.ts'

/** @throws NotFoundError when no line speaks of the episode. */
export async function readEpisode(
  reading: PlaceReading,
  run: string,
  key: EpisodeKey,
): Promise<EpisodeRecord> {
  const id = localId(key)
  const content = await readPlace(reading, key, { id })
  const lines = content.episodes.get(id)
  const summary = lines && episodeSummary(content.place, id, lines)
  if (lines === undefined || summary === undefined)
    throw new NotFoundError(`run "${run}" has no episode ${episodeId(key)}`)
  const record = await recordOf(createRecordReader(reading.blobs), summary, lines)
  const faults = content.faults.filter(({ torn }) => !torn)
  const damage = [...faults.map(({ where, what }) => `${where}: ${what}`), record.damage]
  const told = damage.filter((text) => text !== undefined).join('; ')
  return { ...record, ...(told === '' ? {} : { damage: told }) }
}

/** The episode that the summary is of, with all its records. */
export async function recordOf(
  read: RecordReader,
  summary: EpisodeSummary,
  lines: EpisodeLines,
): Promise<EpisodeRecord> {
  const events: RunEvent[] = []
  const damage: string[] = []
  for (const { records, at } of recordsOf(lines)) {
    try {
      events.push(await read(records, at))
    } catch (error) {
      damage.push(`${records}, byte ${at[0]}: ${describeFault(error)}`)
    }
  }
  return {
    summary,
    ...lastOf('episode', events),
    journal: events.filter((event): event is CallEvent => event.type === 'call'),
    ...lastOf('score', events),
    ...lastOf('training', events),
    failures: events.filter((event): event is FailureEvent => event.type === 'failure'),
    ...(damage.length === 0 ? {} : { damage: damage.join('; ') }),
  }
}

interface SingleEvents {
  readonly episode: EpisodeEvent
  readonly score: ScoreEvent
  readonly training: TrainingEvent
}

function lastOf<Type extends keyof SingleEvents>(
  type: Type,
  events: readonly RunEvent[],
): Partial<Pick<SingleEvents, Type>> {
  const event = events.findLast((candidate) => candidate.type === type)
  return event === undefined ? {} : ({ [type]: event } as Pick<SingleEvents, Type>)
}

export type RecordReader = (records: string, at: At) => Promise<RunEvent>

/** Reads records and keeps the member that it unpacked last: neighbours share it. */
export function createRecordReader(blobs: BlobStore): RecordReader {
  let kept: { readonly name: string; readonly content: Promise<Buffer> } | undefined
  return async (records, [offset, length, start, bytes]) => {
    const name = `${records} ${offset}`
    if (kept?.name !== name) kept = { name, content: readMember(blobs, records, offset, length) }
    const content = await kept.content
    const text = content.subarray(start, start + bytes).toString('utf8')
    return runEventSchema.parse(parseRecord(text))
  }
}

async function readMember(
  blobs: BlobStore,
  records: string,
  offset: number,
  length: number,
): Promise<Buffer> {
  const member = await blobs.read(records, { start: offset, end: offset + length })
  if (member === undefined) throw new Error('the records are gone')
  return unpack(member)
}
