import { mapAhead } from './ahead.ts'
import type { BlobStore } from './blobs.ts'
import type { Part } from './layout.ts'

/** Something that can't be read. */
export interface Fault {
  readonly where: string
  readonly what: string
  /** The end of a blob, cut when its writer died: never acknowledged, so nothing is missing. */
  readonly torn: boolean
}

export interface PartLines {
  readonly part: Part
  readonly lines: readonly string[]
}

/** Blobs that are read at the same time. */
const READS_AHEAD = 8

/** The whole lines of parts, in order. A torn end is left out and told as a fault. */
export async function* readLines(
  blobs: BlobStore,
  folder: string,
  parts: readonly Part[],
  faults: Fault[],
): AsyncGenerator<PartLines> {
  const contents = mapAhead(parts, READS_AHEAD, async (part) => ({
    part,
    content: await blobs.read(`${folder}/${part.name}`),
  }))
  for await (const { part, content } of contents) {
    const where = `${folder}/${part.name}`
    if (content === undefined) {
      faults.push({ where, what: 'it was listed and is gone', torn: false })
      continue
    }
    const lines = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
      .toString('utf8')
      .split('\n')
    const rest = lines.pop() ?? ''
    if (rest !== '') {
      const what = `torn end of ${Buffer.byteLength(rest)} bytes, never acknowledged; ignored`
      faults.push({ where, what, torn: true })
    }
    yield { part, lines: lines.filter((line) => line !== '') }
  }
}
