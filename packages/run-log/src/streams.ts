import { StoreError, summarizeError, type Logger } from '@tiltyard/core'

import type { Piece } from './batch.ts'
import type { BlobStore, GrowingBlobs } from './blobs.ts'
import { joinedName, partName, type Part, type WriterId } from './layout.ts'

/**
 * The streams of one writer. Writing a batch again after a failure writes the same bytes to the same places, until `done`.
 */
export interface Streams {
  /** Adds text to `<folder>/<writer>.jsonl`. */
  text(folder: string, batch: number, text: string): Promise<void>
  /** Adds records, then the lines that point to them. */
  piece(folder: string, batch: number, piece: Piece): Promise<void>
  /** All of the batch is durable. */
  done(batch: number): Promise<void>
}

export function createStreams(blobs: BlobStore, writer: WriterId, logger: Logger): Streams {
  return blobs.growing === undefined
    ? batchedStreams(blobs, writer, logger)
    : growingStreams(blobs.growing, writer)
}

/** Lengths that are remembered: more streams are seldom in use at a time, and the store can be asked. */
const KNOWN_LENGTHS = 1_024

function growingStreams(growing: GrowingBlobs, writer: WriterId): Streams {
  /** Durable lengths, the one used last at the end. */
  const lengths = new Map<string, number>()
  const written = new Map<string, number>()

  /** Where the present batch begins, also when it is written again. */
  const lengthOf = async (key: string) => {
    const known = lengths.get(key) ?? (await growing.length(key))
    lengths.set(key, known)
    return known
  }
  const append = async (key: string, offset: number, content: Uint8Array) => {
    await growing.write(key, offset, content)
    written.set(key, offset + content.length)
  }
  return {
    async text(folder, _, text) {
      const key = `${folder}/${partName(writer, undefined, undefined, '.jsonl')}`
      await append(key, await lengthOf(key), Buffer.from(text))
    },
    async piece(folder, _, { place, kind, records, lines }) {
      const stem = `${folder}/${place}/`
      const recordsKey = stem + partName(writer, undefined, kind, '.jsonl.gz')
      const linesKey = stem + partName(writer, undefined, kind, '.jsonl')
      const offset = await lengthOf(recordsKey)
      await append(recordsKey, offset, records)
      await append(linesKey, await lengthOf(linesKey), Buffer.from(lines(offset)))
    },
    async done() {
      for (const [key, length] of written) {
        lengths.delete(key)
        lengths.set(key, length)
      }
      written.clear()
      for (const key of lengths.keys()) {
        if (lengths.size <= KNOWN_LENGTHS) break
        lengths.delete(key)
      }
    },
  }
}

/** Batches of a run's log or outline that are joined into one blob, so that a reader needs few requests. */
const JOINED_BATCHES = 32

interface Joining {
  batches: { readonly batch: number; readonly text: string }[]
}

function batchedStreams(blobs: BlobStore, writer: WriterId, logger: Logger): Streams {
  const joinings = new Map<string, Joining>()

  const create = async (key: string, content: Uint8Array) => {
    if (await blobs.create(key, content)) return
    throw new StoreError(`"${key}" exists with other content: something else writes as this writer`)
  }
  const join = async (folder: string, joining: Joining) => {
    const { batches } = joining
    joining.batches = []
    const name = joinedName(writer, batches[0]!.batch, batches.at(-1)!.batch)
    try {
      await blobs.create(`${folder}/${name}`, Buffer.from(batches.map(({ text }) => text).join('')))
    } catch (error) {
      // Readers find the single batches.
      logger.warn('batches not joined', { name, error: summarizeError(error).message })
    }
  }
  return {
    async text(folder, batch, text) {
      await create(`${folder}/${partName(writer, batch, undefined, '.jsonl')}`, Buffer.from(text))
      const joining = joinings.get(folder) ?? { batches: [] }
      joinings.set(folder, joining)
      joining.batches = [
        ...joining.batches.filter((entry) => entry.batch !== batch),
        { batch, text },
      ]
    },
    async piece(folder, batch, { place, kind, records, lines }) {
      const name = (ending: Part['ending']) =>
        `${folder}/${place}/${partName(writer, batch, kind, ending)}`
      await create(name('.jsonl.gz'), records)
      await create(name('.jsonl'), Buffer.from(lines(0)))
    },
    async done() {
      for (const [folder, joining] of joinings)
        if (joining.batches.length >= JOINED_BATCHES) await join(folder, joining)
    },
  }
}
