import { randomUUID } from 'node:crypto'
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import type { Logger } from '@tiltyard/core'
import { z } from 'zod'

/** What is known of a checkpoint beside its weights, which the backend keeps. */
const entrySchema = z.object({
  /** `tinker://<model>/<weights|sampler_weights>/<name>` */
  path: z.string(),
  /** The backend's address. */
  ref: z.object({ path: z.string(), kind: z.enum(['training', 'sampling']) }),
  model: z.string(),
  baseModel: z.string(),
  /** Absent: the whole model is trained. */
  rank: z.number().optional(),
  /** Milliseconds since 1970. */
  createdAt: z.number(),
  expiresAt: z.number().optional(),
  bytes: z.number().optional(),
  public: z.boolean().optional(),
  userMetadata: z.record(z.string(), z.string()).optional(),
})
export type LedgerEntry = z.infer<typeof entrySchema>

/** Where the entries are kept. A bucket does as well as a folder: small texts under plain names. */
export interface LedgerStore {
  list(): Promise<readonly string[]>
  read(name: string): Promise<string>
  write(name: string, text: string): Promise<void>
  remove(name: string): Promise<void>
}

export interface Ledger {
  all(): Promise<readonly LedgerEntry[]>
  get(path: string): Promise<LedgerEntry | undefined>
  put(entry: LedgerEntry): Promise<void>
  remove(path: string): Promise<void>
}

/** Entries in memory, written through to the store; what is damaged in it is passed over and said. */
export function createLedger(store: LedgerStore, logger: Logger): Ledger {
  let reading: Promise<Map<string, LedgerEntry>> | undefined
  const load = async () => {
    const entries = new Map<string, LedgerEntry>()
    for (const name of await store.list()) {
      try {
        const entry = entrySchema.parse(JSON.parse(await store.read(name)))
        entries.set(entry.path, entry)
      } catch {
        logger.warn('an entry of the checkpoint ledger can’t be read', { name })
      }
    }
    return entries
  }
  const entries = () => {
    reading ??= load().catch((error: unknown) => {
      reading = undefined
      throw error
    })
    return reading
  }
  return {
    all: async () => [...(await entries()).values()],
    get: async (path) => (await entries()).get(path),
    async put(entry) {
      const known = await entries()
      await store.write(nameOf(entry.path), JSON.stringify(entry))
      known.set(entry.path, entry)
    },
    async remove(path) {
      const known = await entries()
      await store.remove(nameOf(path))
      known.delete(path)
    },
  }
}

/** A name that every store takes; paths hold colons and slashes. */
function nameOf(path: string): string {
  return `${Buffer.from(path).toString('base64url')}.json`
}

/** Ends with the process. */
export function memoryLedgerStore(): LedgerStore {
  const texts = new Map<string, string>()
  return {
    list: async () => [...texts.keys()],
    async read(name) {
      const text = texts.get(name)
      if (text === undefined) throw new Error(`no entry ${name}`)
      return text
    },
    async write(name, text) {
      texts.set(name, text)
    },
    async remove(name) {
      texts.delete(name)
    },
  }
}

/** One file per checkpoint; readers see whole files only. */
export function folderLedgerStore(folder: string): LedgerStore {
  return {
    async list() {
      await mkdir(folder, { recursive: true })
      return (await readdir(folder)).filter((name) => name.endsWith('.json'))
    },
    read: (name) => readFile(join(folder, name), 'utf8'),
    async write(name, text) {
      await mkdir(folder, { recursive: true })
      const temporary = join(folder, `.${randomUUID()}.tmp`)
      await writeFile(temporary, text)
      await rename(temporary, join(folder, name))
    },
    remove: (name) => rm(join(folder, name), { force: true }),
  }
}
