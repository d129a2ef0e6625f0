import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/**
 * Records are compressed together until they are this many characters: one record is read by unpacking one member (about 1 ms), small ones
 * share what they have in common, and a file of members is still one gzip stream of JSON lines for any other program.
 */
const BLOCK_CHARS = 128 * 1024

/** The fastest level: the others take twice the time for a tenth of the size. */
const LEVEL = 1

/** Largest unpacked member that is read: what comes from a store may be anything. */
const MAX_UNPACKED_BYTES = 1024 * 1024 * 1024

/** A record's place in what is being packed. */
export interface Packed {
  readonly block: number
  readonly start: number
  readonly bytes: number
}

export interface Packer {
  add(text: string): Packed
  /** The gzip members, in order of block. */
  finish(): Promise<readonly Uint8Array[]>
}

/** Packs records into gzip members, in worker threads, while more are added. */
export function createPacker(): Packer {
  const members: Promise<Uint8Array>[] = []
  let texts: string[] = []
  let chars = 0
  let bytes = 0

  const closeBlock = () => {
    const member = compress(`${texts.join('\n')}\n`, { level: LEVEL })
    member.catch(() => {})
    members.push(member)
    texts = []
    chars = 0
    bytes = 0
  }
  return {
    add(text) {
      const packed = { block: members.length, start: bytes, bytes: Buffer.byteLength(text) }
      texts.push(text)
      chars += text.length
      bytes += packed.bytes + 1
      if (chars >= BLOCK_CHARS) closeBlock()
      return packed
    },
    finish() {
      if (texts.length > 0) closeBlock()
      return Promise.all(members)
    },
  }
}

/** @throws Error when the bytes are no whole gzip member: it carries a checksum. */
export function unpack(member: Uint8Array): Promise<Buffer> {
  return decompress(member, { maxOutputLength: MAX_UNPACKED_BYTES })
}
