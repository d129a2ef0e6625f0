import {
  DataError,
  NotFoundError,
  checkOptions,
  endName,
  isRewarded,
  nearest,
  runRecordSchema,
  silentLogger,
  unknownName,
  type EpisodeFilter,
  type EpisodeSummary,
  type Logger,
  type RunIndex,
  type RunRecord,
  type RunWriter,
} from '@tiltyard/core'

import { mapAhead } from './ahead.ts'
import type { BlobStore } from './blobs.ts'
import { takeClaim } from './claim.ts'
import { readClaims, type Claim } from './claims.ts'
import { claimKey, type GroupPlace } from './layout.ts'
import { localId } from './lines.ts'
import { readLog } from './log.ts'
import { decodeName, encodeName } from './names.ts'
import { UNFINISHED } from './outline.ts'
import { readPlace } from './place.ts'
import { listPlaces, placesThatMayHold } from './places.ts'
import { createRecordReader, readEpisode, recordOf } from './records.ts'
import { readRunState, summaryOf } from './run-state.ts'
import type { Wanted } from './sieve.ts'
import { episodeSummaries, groupSummaries } from './summaries.ts'
import { createUpkeep } from './upkeep/upkeep.ts'
import { createViews } from './views.ts'
import { createWriter, type WriterPace } from './writer.ts'

export interface BlobRunIndexOptions {
  readonly blobs: BlobStore
  /** How often writers write, and how much may wait. */
  readonly pace: WriterPace
  /** Default: silent. */
  readonly logger?: Logger | undefined
}

/** Groups of runs, and runs, that are read at the same time. */
const READS_AHEAD = 4
const RUNS_AHEAD = 16

/** A run index over a store of blobs: all that a folder, a bucket or a map need to bring is a `BlobStore`. */
export function blobRunIndex({
  blobs,
  pace,
  logger = silentLogger,
}: BlobRunIndexOptions): RunIndex {
  const writers = new Set<RunWriter>()
  const upkeep = createUpkeep({ blobs, folderOf, claimsOf })

  const runNames = async () => {
    const { folders } = await blobs.list('')
    return folders
      .map(decodeName)
      .filter((name) => name !== undefined)
      .toSorted()
  }
  const notFound = async (run: string) => {
    const names = await runNames()
    const near = nearest(run, names)
    const told = near === undefined ? names.slice(0, MAX_NAMES) : [near]
    return new NotFoundError(`${unknownName('run', run, told)} (in ${blobs.name})`)
  }
  async function claimsOf(run: string): Promise<readonly Claim[]> {
    const claims = await readClaims(blobs, folderOf(run))
    if (claims.writers.length === 0) throw await notFound(run)
    return claims.readable
  }
  const viewsFor = async (folder: string, record: RunRecord, { epoch, number }: Claim) => {
    const { growing } = blobs
    if (growing === undefined) return undefined
    try {
      const { readable } = await readClaims(blobs, folder)
      const { metrics } = await readLog(blobs, folder, readable)
      return await createViews({ blobs, growing, folder, record, metrics })
    } catch (error) {
      // A run that never began leaves its name free.
      if (epoch === 1) await blobs.remove(claimKey(folder, { epoch, number })).catch(() => {})
      throw error
    }
  }
  const contentsFor = async function* (run: string, filter: EpisodeFilter) {
    const claims = await claimsOf(run)
    const folder = folderOf(run)
    const all = await listPlaces(blobs, folder, filter)
    const places = await placesThatMayHold(blobs, folder, all, filter)
    yield* contents(run, claims, places, { filter })
  }
  const contents = async function* (
    run: string,
    claims: readonly Claim[],
    places: readonly GroupPlace[],
    wanted?: Wanted,
  ) {
    yield* mapAhead(places, READS_AHEAD, (place) =>
      readPlace({ blobs, folder: folderOf(run), claims }, place, wanted),
    )
  }

  return {
    specVersion: 'run-index/1',
    name: blobs.name,
    async claim(given, options) {
      const record = checkOptions('run record', runRecordSchema, given)
      const folder = folderOf(record.name)
      const claim = await takeClaim({
        blobs,
        folder,
        record,
        options,
        signOfLifeMs: pace.signOfLifeMs,
        notFound: () => notFound(record.name),
      })
      const views = claim.number === 0 ? await viewsFor(folder, record, claim) : undefined
      const writer = createWriter({
        blobs,
        run: record.name,
        folder,
        writer: claim,
        step: claim.step,
        views,
        pace,
        logger,
        onClose: () => writers.delete(writer),
      })
      writers.add(writer)
      return writer
    },
    async *runs() {
      const summaries = mapAhead(await runNames(), RUNS_AHEAD, async (name) => {
        const state = await readRunState(blobs, folderOf(name))
        return state && summaryOf(name, state, [])
      })
      for await (const summary of summaries) if (summary !== undefined) yield summary
    },
    async run(name) {
      const folder = folderOf(name)
      const state = await readRunState(blobs, folder)
      if (state === undefined) throw await notFound(name)
      const { faults, ...log } = await readLog(blobs, folder, state.claims.readable, state.logParts)
      const damage = faults
        .filter(({ torn }) => !torn)
        .map(({ where, what }) => `${where}: ${what}`)
      const newest = state.claims.readable.at(-1)
      if (newest === undefined) {
        const why = state.claims.damage.map(({ where, what }) => `${where}: ${what}`).join('; ')
        throw new DataError(`the record of run "${name}" can't be read: ${why}`)
      }
      return { record: newest.record, summary: summaryOf(name, state, damage), ...log }
    },
    async *groups(run, filter = {}) {
      const claims = await claimsOf(run)
      const places = await listPlaces(blobs, folderOf(run), filter)
      for await (const content of contents(run, claims, places)) yield* groupSummaries(content)
    },
    async *episodes(run, filter = {}) {
      for await (const content of contentsFor(run, filter))
        yield* episodeSummaries(content).filter((episode) => isWanted(episode, filter))
    },
    async *records(run, filter = {}) {
      const read = createRecordReader(blobs)
      for await (const content of contentsFor(run, filter)) {
        for (const summary of episodeSummaries(content)) {
          const lines = content.episodes.get(localId(summary.key))
          if (lines !== undefined && isWanted(summary, filter))
            yield await recordOf(read, summary, lines)
        }
      }
    },
    async episode(run, key) {
      const claims = await claimsOf(run)
      return readEpisode({ blobs, folder: folderOf(run), claims }, run, key)
    },
    upkeep,
    async close() {
      await Promise.all([...writers].map((writer) => writer.close()))
    },
  }
}

/** Runs that an error names. */
const MAX_NAMES = 20

function folderOf(run: string): string {
  return encodeName('run', run)
}

function isWanted(episode: EpisodeSummary, filter: EpisodeFilter): boolean {
  const { group, task, end, minReward, maxReward, trained } = filter
  if (group !== undefined && episode.key.group !== group) return false
  if (task !== undefined && episode.task !== task) return false
  const found = episode.end === undefined ? UNFINISHED : endName(episode.end)
  if (end !== undefined && found !== end) return false
  if (
    trained !== undefined &&
    (episode.trained === undefined || trained !== (episode.trained === true))
  )
    return false
  if (minReward === undefined && maxReward === undefined) return true
  const { reward } = episode
  if (reward === undefined || !isRewarded(reward)) return false
  return reward.reward >= (minReward ?? -Infinity) && reward.reward <= (maxReward ?? Infinity)
}
