import type { GroupKey, Split } from '@tiltyard/core'

import type { BlobInfo } from './blobs.ts'
import { encodeName } from './names.ts'

/**
 * Where things lie. `<run>` is the encoded name of the run, `<writer>` an epoch (`0002`) or, for one that joined it, epoch and
 * number (`0002.01`). In stores whose blobs can't grow, `-<batch>` follows the writer.
 *
 *     <run>/claims/<writer>.json                      who writes, since when, and the run's record
 *     <run>/alive/<writer>                            rewritten while the writer lives
 *     <run>/log/<writer>.jsonl                        events of the run itself: steps, metrics, checkpoints
 *     <run>/outline/<writer>.jsonl                    what values occur in which group of runs
 *     <run>/train/step-0007/<writer>.episodes.jsonl   lines: summaries, and where the records lie
 *     <run>/train/step-0007/<writer>.episodes.jsonl.gz   records, in gzip members of many
 *     <run>/train/step-0007/<writer>.calls.jsonl(.gz)    the journal of episodes under way
 *     <run>/eval/<evaluation>/step-0007/…
 */

/** Which process wrote something: the owner of an epoch has number 0. */
export interface WriterId {
  readonly epoch: number
  readonly number: number
}

export const streamKinds = ['episodes', 'calls'] as const
export type StreamKind = (typeof streamKinds)[number]

/** The folder of a step's episodes: `train/step-0007`. */
export type GroupPlace = Pick<GroupKey, 'split' | 'evaluation' | 'step'>

const stepName = (step: number) => `step-${String(step).padStart(4, '0')}`

export function placeFolder({ split, evaluation, step }: GroupPlace): string {
  const named = evaluation === undefined ? '' : `/${encodeName('evaluation', evaluation)}`
  return `${split}${named}/${stepName(step)}`
}

/** The step of a folder's name, or undefined. */
export function stepOfFolder(name: string): number | undefined {
  const digits = /^step-(\d{4,})$/.exec(name)?.[1]
  return digits !== undefined && stepName(Number(digits)) === name ? Number(digits) : undefined
}

/** Order of groups of runs: training first, then evaluations by name, the unnamed first; then by step, as numbers. */
export function comparePlaces(a: GroupPlace, b: GroupPlace): number {
  return (
    splitOrder(a.split) - splitOrder(b.split) ||
    compareText(a.evaluation ?? '', b.evaluation ?? '') ||
    a.step - b.step
  )
}

function splitOrder(split: Split): number {
  return split === 'train' ? 0 : 1
}

function compareText(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

export function compareWriters(a: WriterId, b: WriterId): number {
  return a.epoch - b.epoch || a.number - b.number
}

export function writerName({ epoch, number }: WriterId): string {
  const joined = number === 0 ? '' : `.${String(number).padStart(2, '0')}`
  return `${String(epoch).padStart(4, '0')}${joined}`
}

export function claimKey(folder: string, writer: WriterId): string {
  return `${folder}/claims/${writerName(writer)}.json`
}

export function aliveKey(folder: string, writer: WriterId): string {
  return `${folder}/alive/${writerName(writer)}`
}

export function parseWriter(text: string): WriterId | undefined {
  const [, epoch, number] = /^(\d{4,})(?:\.(\d{2,}))?$/.exec(text) ?? []
  return epoch === undefined ? undefined : { epoch: Number(epoch), number: Number(number ?? 0) }
}

/** A blob that holds a piece of a stream: all of it (no batches), one batch, or several of them joined (`000000..000031`). */
export interface Part {
  readonly name: string
  readonly bytes: number
  readonly writer: WriterId
  readonly first: number
  readonly last: number
  /** Absent in the run's log and outline. */
  readonly kind: StreamKind | undefined
  readonly ending: '.jsonl' | '.jsonl.gz'
}

const batchName = (batch: number) => String(batch).padStart(6, '0')

/** Name of the blob for a batch; without a batch, of the one that grows. */
export function partName(
  writer: WriterId,
  batch: number | undefined,
  kind: StreamKind | undefined,
  ending: Part['ending'],
): string {
  const batches = batch === undefined ? '' : `-${batchName(batch)}`
  return `${writerName(writer)}${batches}${kind === undefined ? '' : `.${kind}`}${ending}`
}

export function joinedName(writer: WriterId, first: number, last: number): string {
  return `${writerName(writer)}-${batchName(first)}..${batchName(last)}.jsonl`
}

const partPattern =
  /^([\d.]+?)(?:-(\d{6,})(?:\.\.(\d{6,}))?)?(?:\.(episodes|calls))?(\.jsonl|\.jsonl\.gz)$/

export function parsePart({ name, bytes }: BlobInfo): Part | undefined {
  const match = partPattern.exec(name)
  const writer = parseWriter(match?.[1] ?? '')
  if (match === null || writer === undefined) return undefined
  const [, , first = '0', last = first, kind, ending] = match
  return {
    name,
    bytes,
    writer,
    first: Number(first),
    last: Number(last),
    kind: kind as StreamKind | undefined,
    ending: ending as Part['ending'],
  }
}

/** Parts of one stream in order of writing; those that a joined part repeats are left out. */
export function currentParts(parts: readonly Part[]): readonly Part[] {
  const sorted = parts.toSorted(
    (a, b) => compareWriters(a.writer, b.writer) || a.first - b.first || b.last - a.last,
  )
  const kept: Part[] = []
  for (const part of sorted) {
    const before = kept.at(-1)
    const repeated =
      before !== undefined &&
      compareWriters(before.writer, part.writer) === 0 &&
      part.last <= before.last
    if (!repeated) kept.push(part)
  }
  return kept
}
