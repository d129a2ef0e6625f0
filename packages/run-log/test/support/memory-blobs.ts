import { blobRunIndex, type BlobStore } from '../../src/index.ts'
import type { WriterPace } from '../../src/writer.ts'

/** A store in a map, with what tests look at and reach into. */
export interface MemoryBlobs extends BlobStore {
  readonly content: Map<string, Uint8Array>
  /** Keys read so far. */
  readonly reads: string[]
  /** Called before each write; may throw. */
  beforeWrite: (key: string) => void | Promise<void>
  /** How old everything is, in milliseconds. */
  age: number
}

export function memoryBlobs(
  growing: boolean,
  content = new Map<string, Uint8Array>(),
): MemoryBlobs {
  const reads: string[] = []
  const store: MemoryBlobs = {
    name: 'memory',
    content,
    reads,
    age: 0,
    beforeWrite: () => {},
    async create(key, bytes) {
      await store.beforeWrite(key)
      const existing = content.get(key)
      if (existing !== undefined) return Buffer.compare(existing, bytes) === 0
      content.set(key, Buffer.from(bytes))
      return true
    },
    async replace(key, bytes) {
      await store.beforeWrite(key)
      content.set(key, Buffer.from(bytes))
    },
    async read(key, range) {
      reads.push(key)
      const bytes = content.get(key)
      if (bytes === undefined || range === undefined) return bytes
      return 'last' in range
        ? bytes.subarray(Math.max(0, bytes.length - range.last))
        : bytes.subarray(range.start, range.end)
    },
    async list(folder) {
      const prefix = folder === '' ? '' : `${folder}/`
      const below = [...content].filter(([key]) => key.startsWith(prefix))
      const rest = below.map(([key, bytes]) => ({ name: key.slice(prefix.length), bytes }))
      return {
        blobs: rest
          .filter(({ name }) => !name.includes('/'))
          .map(({ name, bytes }) => ({ name, bytes: bytes.length, age: store.age })),
        folders: [
          ...new Set(rest.flatMap(({ name }) => (name.includes('/') ? [name.split('/')[0]!] : []))),
        ],
      }
    },
    async remove(key) {
      content.delete(key)
    },
    ...(growing
      ? {
          growing: {
            length: async (key) => content.get(key)?.length ?? 0,
            async write(key, offset, bytes) {
              await store.beforeWrite(key)
              const before = (content.get(key) ?? new Uint8Array()).subarray(0, offset)
              content.set(key, Buffer.concat([before, bytes]))
            },
          },
        }
      : {}),
  }
  return store
}

/** Writes at flushes only, so that no test waits. */
export const flushOnly: WriterPace = {
  batchMs: 3_600_000,
  batchSize: 2 ** 30,
  bufferSize: 2 ** 30,
  signOfLifeMs: 3_600_000,
}

export function indexOver(blobs: BlobStore, pace: Partial<WriterPace> = {}) {
  return blobRunIndex({ blobs, pace: { ...flushOnly, ...pace } })
}
