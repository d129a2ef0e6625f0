import type { BlobStore } from './blobs.ts'
import { describeFault, visibility, type Claim } from './claims.ts'
import { currentParts, placeFolder, type GroupPlace, type Part, type StreamKind } from './layout.ts'
import {
  parseLine,
  type At,
  type CallLine,
  type EpisodeLine,
  type GroupLine,
  type Line,
  type ScoreLine,
  type TrainingLine,
} from './lines.ts'
import { listParts } from './log.ts'
import { linesFor, type Wanted } from './sieve.ts'
import { readTexts, type Fault, type PartText } from './text-lines.ts'

/** A line and where it was read: its records lie in the blob of the same name with `.gz`. */
export interface Found<L extends Line = Line> {
  readonly line: L
  readonly epoch: number
  readonly records: string
}

/** All lines of one episode that count. */
export interface EpisodeLines {
  episode?: Found<EpisodeLine>
  score?: Found<ScoreLine>
  training?: Found<TrainingLine>
  calls: Found<CallLine>[]
  failures: Found[]
}

/** A step's episodes and groups, folded from its lines. */
export interface PlaceContent {
  readonly place: GroupPlace
  /** By id in the step (`g3/m1/a0`), in no order. */
  readonly episodes: ReadonlyMap<string, EpisodeLines>
  readonly groups: ReadonlyMap<number, Found<GroupLine>>
  readonly faults: readonly Fault[]
}

export interface PlaceReading {
  readonly blobs: BlobStore
  /** The run's. */
  readonly folder: string
  readonly claims: readonly Claim[]
}

export async function readPlace(
  { blobs, folder, claims }: PlaceReading,
  place: GroupPlace,
  wanted?: Wanted,
): Promise<PlaceContent> {
  const where = `${folder}/${placeFolder(place)}`
  const isVisible = visibility(claims)
  const parts = (await listParts(blobs, where)).filter(
    ({ ending, writer }) => ending === '.jsonl' && isVisible(writer.epoch, place.step),
  )
  const episodes = new Map<string, EpisodeLines>()
  const groups = new Map<number, Found<GroupLine>>()
  const faults: Fault[] = []

  const texts: PartText[] = []
  for (const kind of ['episodes', 'calls'] as const)
    for await (const text of readTexts(blobs, where, ofKind(parts, kind), faults)) texts.push(text)
  const lines = linesFor(
    wanted,
    texts.map(({ text }) => text),
  )

  for (const [number, { part }] of texts.entries()) {
    const { epoch } = part.writer
    const records = `${where}/${part.name}.gz`
    for (const text of lines[number]!) {
      const line = tryLine(text, `${where}/${part.name}`, faults)
      if (line === undefined) continue
      if (line.type === 'group') groups.set(line.group, { line, epoch, records })
      else if (line.type !== 'training' || isVisible(epoch, line.step))
        take(episodes, { line, epoch, records })
    }
  }
  return { place, episodes, groups, faults }
}

function ofKind(parts: readonly Part[], kind: StreamKind): readonly Part[] {
  return currentParts(parts.filter((part) => part.kind === kind))
}

function tryLine(text: string, where: string, faults: Fault[]): Line | undefined {
  try {
    return parseLine(text)
  } catch (error) {
    faults.push({ where, what: `unreadable line: ${describeFault(error)}`, torn: false })
    return undefined
  }
}

/** Lines come in order of epoch. A newer epoch's play begins the episode anew; of one epoch the later line counts. */
function take(episodes: Map<string, EpisodeLines>, found: Found): void {
  const { line, epoch } = found
  if (line.type === 'group') return
  let lines = episodes.get(line.id)
  if (lines === undefined || (line.type === 'episode' && isOlder(lines.episode, epoch))) {
    lines = sinceEpoch(lines, epoch)
    episodes.set(line.id, lines)
  }
  switch (line.type) {
    case 'episode':
      lines.episode = { ...found, line }
      break
    case 'score':
      lines.score = { ...found, line }
      break
    case 'training':
      lines.training = { ...found, line }
      break
    case 'failure':
      lines.failures.push(found)
      break
    case 'call':
      if (epoch >= (lines.episode?.epoch ?? 0)) addCall(lines, { ...found, line })
      break
  }
}

function isOlder(found: Found | undefined, epoch: number): boolean {
  return found === undefined || found.epoch < epoch
}

function sinceEpoch(lines: EpisodeLines | undefined, epoch: number): EpisodeLines {
  const kept: EpisodeLines = { calls: [], failures: [] }
  if (lines === undefined) return kept
  if (lines.score !== undefined && lines.score.epoch >= epoch) kept.score = lines.score
  if (lines.training !== undefined && lines.training.epoch >= epoch) kept.training = lines.training
  kept.failures = lines.failures.filter((failure) => failure.epoch >= epoch)
  return kept
}

/** A journal that a newer epoch began again replaces the older one. */
function addCall(lines: EpisodeLines, found: Found<CallLine>): void {
  const last = lines.calls.at(-1)
  if (last !== undefined && last.epoch < found.epoch) lines.calls = []
  lines.calls.push(found)
}

/** Where all records of an episode lie, in the order in which they were written. */
export function recordsOf(lines: EpisodeLines): readonly { records: string; at: At }[] {
  const { episode, score, training, calls, failures } = lines
  return [...calls, ...failures, episode, score, training]
    .filter((found) => found !== undefined)
    .map(({ records, line }) => ({ records, at: line.at }))
}
