import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/**
 * Records are compressed together up to this many bytes: one record is read by unpacking one member (about 1 ms), small ones
 * share what they have in common, and a file of members is still one gzip stream of JSON lines for any other program.
 */
const BLOCK_BYTES = 128 * 1024

/** A block compresses to about this much; more is given out as needed. */
const OUTPUT_BYTES = 32 * 1024

/** The fastest level: the others take twice the time for a tenth of the size. */
const LEVEL = 1

/** Largest unpacked member that is read: what comes from a store may be anything. */
const MAX_UNPACKED_BYTES = 1024 * 1024 * 1024

const NEWLINE = 0x0a

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
  let block = Buffer.alloc(0)
  let used = 0

  const closeBlock = () => {
    const member = compress(block.subarray(0, used), { level: LEVEL, chunkSize: OUTPUT_BYTES })
    member.catch(() => {})
    members.push(member)
    block = Buffer.alloc(0)
    used = 0
  }
  return {
    add(text) {
      const bytes = Buffer.byteLength(text)
      if (used > 0 && used + bytes + 1 > block.length) closeBlock()
      // Text goes out of the heap at once: kept strings would be copied by each garbage collection.
      if (used === 0) block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES, bytes + 1))
      const packed = { block: members.length, start: used, bytes }
      block.write(text, used)
      block[used + bytes] = NEWLINE
      used += bytes + 1
      return packed
    },
    finish() {
      if (used > 0) closeBlock()
      return Promise.all(members)
    },
  }
}

/** @throws Error when the bytes are no whole gzip member: it carries a checksum. */
export function unpack(member: Uint8Array): Promise<Buffer> {
  return decompress(member, { maxOutputLength: MAX_UNPACKED_BYTES })
}
