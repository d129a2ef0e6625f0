import {
  NotFoundError,
  type Backend,
  type CheckpointRef,
  type Learner,
  type Sampler,
} from '@tiltyard/core'

import type { Ledger, LedgerEntry } from './ledger.ts'
import { Refusal } from './refusal.ts'

export interface SaveRequest {
  readonly model: string
  readonly baseModel: string
  readonly rank?: number
  readonly name: string
  readonly ttlSeconds?: number
  readonly overwrite?: boolean
  readonly userMetadata?: Readonly<Record<string, string>>
}

/** Checkpoints under the names that clients know. */
export interface Checkpoints {
  save(learner: Learner, request: SaveRequest): Promise<LedgerEntry>
  publish(learner: Learner, request: SaveRequest): Promise<LedgerEntry>
  /** @throws Refusal 404 when there is none, or its time has run out. */
  get(path: string): Promise<LedgerEntry>
  list(): Promise<readonly LedgerEntry[]>
  update(entry: LedgerEntry): Promise<void>
  remove(path: string): Promise<void>
  /** Removes those whose time has run out. */
  sweep(): Promise<void>
}

const NAME = /^[\w.-]{1,255}$/

export function createCheckpoints(backend: Backend, ledger: Ledger): Checkpoints {
  const drop = async (entry: LedgerEntry) => {
    await ledger.remove(entry.path)
    await backend.checkpoints().delete(entry.ref)
  }

  const store = async (
    request: SaveRequest,
    kind: 'weights' | 'sampler_weights',
    write: (name: string) => Promise<CheckpointRef>,
  ) => {
    const { model, name } = request
    if (!NAME.test(name) || name.startsWith('.'))
      throw new Refusal(
        400,
        `"${name}" is no name for a checkpoint; use letters, digits, "-", "_", "."`,
      )
    const path = `tinker://${model}/${kind}/${name}`
    const before = await ledger.get(path)
    if (before !== undefined && request.overwrite !== true)
      throw new Refusal(409, `${path} already exists; choose another name, or overwrite it`)
    // The backend's name is its own: two models may save under the same one.
    const ref = await write(`${crypto.randomUUID().slice(0, 8)}-${name.slice(0, 100)}`)
    const info = (await backend.checkpoints().list()).find((it) => it.path === ref.path)
    const entry: LedgerEntry = {
      path,
      ref: { path: ref.path, kind: ref.kind },
      model,
      baseModel: request.baseModel,
      ...(request.rank !== undefined && { rank: request.rank }),
      createdAt: Date.now(),
      ...(request.ttlSeconds !== undefined && {
        expiresAt: Date.now() + 1_000 * request.ttlSeconds,
      }),
      ...(info?.bytes !== undefined && { bytes: info.bytes }),
      ...(request.userMetadata !== undefined && { userMetadata: { ...request.userMetadata } }),
    }
    await ledger.put(entry)
    if (before !== undefined) await backend.checkpoints().delete(before.ref)
    return entry
  }

  return {
    save: (learner, request) => store(request, 'weights', (name) => learner.save(name)),
    publish: (learner, request) =>
      store(request, 'sampler_weights', async (name) => {
        const sampler = await learner.publish({ name })
        await sampler.close()
        return published(backend, sampler, name)
      }),
    async get(path) {
      const entry = await ledger.get(path)
      if (entry === undefined || !alive(entry)) throw new Refusal(404, `no checkpoint ${path}`)
      return entry
    },
    list: async () => (await ledger.all()).filter(alive),
    update: (entry) => ledger.put(entry),
    async remove(path) {
      const entry = await ledger.get(path)
      if (entry === undefined) throw new Refusal(404, `no checkpoint ${path}`)
      await drop(entry)
    },
    async sweep() {
      for (const entry of await ledger.all()) if (!alive(entry)) await drop(entry)
    },
  }
}

/** The address of what was published. Backends tell it; for those that don't it is looked up by its name. */
async function published(backend: Backend, sampler: Sampler, name: string): Promise<CheckpointRef> {
  const ref =
    sampler.checkpoint ??
    (await backend.checkpoints().list()).find((it) => it.name === name && it.kind === 'sampling')
  if (ref === undefined) throw new NotFoundError('the backend doesn’t tell where it published')
  return ref
}

function alive({ expiresAt }: LedgerEntry): boolean {
  return expiresAt === undefined || expiresAt > Date.now()
}
