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

export interface PartText {
  readonly part: Part
  /** Whole lines, each with its newline. */
  readonly text: Buffer
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
  for await (const { part, text } of readTexts(blobs, folder, parts, faults))
    yield { part, lines: splitLines(text) }
}

/** As `readLines`, for who looks into the text before it is split. */
export async function* readTexts(
  blobs: BlobStore,
  folder: string,
  parts: readonly Part[],
  faults: Fault[],
): AsyncGenerator<PartText> {
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
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
    const end = bytes.lastIndexOf(NEWLINE) + 1
    const rest = bytes.length - end
    if (rest > 0) {
      const what = `torn end of ${rest} bytes, never acknowledged; ignored`
      faults.push({ where, what, torn: true })
    }
    yield { part, text: bytes.subarray(0, end) }
  }
}

const NEWLINE = 0x0a

export function splitLines(text: Buffer): readonly string[] {
  return text
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
}

/** The lines that hold a text, in order; undefined once there are more than `most`. Splits nothing. */
export function findLines(
  text: Buffer,
  needle: string,
  most = Infinity,
): readonly FoundLine[] | undefined {
  const bytes = Buffer.from(needle)
  const found: FoundLine[] = []
  for (let at = text.indexOf(bytes); at !== -1;) {
    if (found.length >= most) return undefined
    const start = text.lastIndexOf(NEWLINE, at) + 1
    const end = text.indexOf(NEWLINE, at)
    found.push({ start, line: text.toString('utf8', start, end) })
    at = text.indexOf(bytes, end)
  }
  return found
}

export interface FoundLine {
  /** Byte at which it begins. */
  readonly start: number
  readonly line: string
}
