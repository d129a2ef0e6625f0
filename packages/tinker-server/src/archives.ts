import type { Backend, CheckpointFile, Clock } from '@tiltyard/core'
import { createTarPacker } from 'modern-tar'

import type { Checkpoints } from './checkpoints.ts'
import { Refusal } from './refusal.ts'

/** A checkpoint's files as one tar: what is downloaded, and how long it is. */
interface Archive {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>
  readonly bytes: number
}

/** Addresses under which the archive of a checkpoint can be fetched without a key, for a while. */
export interface Archives {
  /** @throws Refusal 404 for a checkpoint that isn't there, 400 where the backend can't give its files. */
  offer(path: string): Promise<{ readonly token: string; readonly expires: Date }>
  /** @throws Refusal 404 for a token that never was, or is over. */
  open(token: string): Promise<Archive>
  sweep(): void
}

const LIFE_MS = 15 * 60_000
/** Clients take an archive for whole when this file is in it. */
const MARKER = 'checkpoint_complete'
const BLOCK = 512
const END_BLOCKS = 2

export function createArchives(backend: Backend, checkpoints: Checkpoints, clock: Clock): Archives {
  const offered = new Map<string, { readonly path: string; readonly until: number }>()

  const filesOf = async (path: string) => {
    const { ref, createdAt } = await checkpoints.get(path)
    const files = await backend.checkpoints().files?.(ref)
    if (files !== undefined) return { files, createdAt }
    throw new Refusal(
      400,
      `the backend "${backend.name}" doesn’t give the files of its checkpoints`,
    )
  }

  return {
    async offer(path) {
      await filesOf(path)
      const token = crypto.randomUUID()
      offered.set(token, { path, until: clock.now() + LIFE_MS })
      return { token, expires: new Date(Date.now() + LIFE_MS) }
    },
    async open(token) {
      const offer = offered.get(token)
      if (offer === undefined || offer.until <= clock.now())
        throw new Refusal(404, 'no such archive, or its address is over; ask for a new one')
      const { files, createdAt } = await filesOf(offer.path)
      const all = [...files, { name: MARKER, bytes: 0, read: async function* () {} }]
      const blocks = all.map(({ bytes }) => 1 + Math.ceil(bytes / BLOCK))
      return {
        body: tarOf(all, new Date(createdAt)),
        bytes: BLOCK * blocks.reduce((sum, count) => sum + count, END_BLOCKS),
      }
    },
    sweep() {
      const now = clock.now()
      for (const [token, { until }] of offered) if (until <= now) offered.delete(token)
    },
  }
}

/** Packs as fast as it is read; a file that can't be read any more breaks the download off. */
function tarOf(
  files: readonly CheckpointFile[],
  mtime: Date,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const { readable, controller } = createTarPacker()
  const pack = async () => {
    for (const { name, bytes, read } of files) {
      const entry = controller.add({ name, size: bytes, type: 'file', mtime }).getWriter()
      for await (const piece of read()) await entry.write(piece)
      await entry.close()
    }
    controller.finalize()
  }
  pack().catch((error: unknown) => {
    controller.error(error)
  })
  return readable
}
