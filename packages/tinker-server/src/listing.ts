import type { Context } from 'hono'

import type { Checkpoints } from './checkpoints.ts'
import type { LedgerEntry } from './ledger.ts'
import { Refusal } from './refusal.ts'
import type { ServedModel, Sessions } from './sessions.ts'

interface WireRun {
  readonly training_run_id: string
}

/** Runs that have a model or a checkpoint here, the newest first. */
export async function runsOf(
  sessions: Sessions,
  checkpoints: Checkpoints,
): Promise<readonly WireRun[]> {
  const entries = await checkpoints.list()
  const live = new Map(sessions.models().map((model) => [model.id, model]))
  const ids = new Set([...live.keys(), ...entries.map(({ model }) => model)])
  return [...ids]
    .map((id) => ({ id, saved: entries.filter(({ model }) => model === id), model: live.get(id) }))
    .map((run) => ({ ...run, usedAt: lastUse(run) }))
    .toSorted((a, b) => b.usedAt - a.usedAt)
    .map(({ id, saved, model, usedAt }) => {
      const { baseModel, rank } = model ?? saved[0]!
      const last = (kind: string) => saved.findLast(({ ref }) => ref.kind === kind)
      const [training, sampling] = [last('training'), last('sampling')]
      return {
        training_run_id: id,
        base_model: baseModel,
        model_owner: 'local',
        is_lora: rank !== undefined,
        ...(rank !== undefined && { lora_rank: rank }),
        last_request_time: new Date(usedAt).toISOString(),
        ...(training !== undefined && { last_checkpoint: wireCheckpoint(training) }),
        ...(sampling !== undefined && { last_sampler_checkpoint: wireCheckpoint(sampling) }),
      }
    })
}

function lastUse({
  saved,
  model,
}: {
  saved: readonly LedgerEntry[]
  model: ServedModel | undefined
}) {
  return Math.max(model?.usedAt ?? 0, ...saved.map(({ createdAt }) => createdAt))
}

export function wireCheckpoint(entry: LedgerEntry) {
  return {
    checkpoint_id: entry.path.split('/').slice(3).join('/'),
    checkpoint_type: entry.ref.kind === 'training' ? 'training' : 'sampler',
    time: new Date(entry.createdAt).toISOString(),
    tinker_path: entry.path,
    public: entry.public ?? false,
    ...(entry.bytes !== undefined && { size_bytes: entry.bytes }),
    ...(entry.expiresAt !== undefined && { expires_at: new Date(entry.expiresAt).toISOString() }),
    ...(entry.userMetadata !== undefined && { user_metadata: entry.userMetadata }),
  }
}

export function pageOf<T>(items: readonly T[], context: Context, defaultLimit: number) {
  const number = (name: string, otherwise: number) => {
    const value = Number(context.req.query(name) ?? otherwise)
    if (!Number.isInteger(value) || value < 0) throw new Refusal(400, `${name} is no whole number`)
    return value
  }
  const [limit, offset] = [number('limit', defaultLimit), number('offset', 0)]
  return {
    items: items.slice(offset, offset + limit),
    cursor: { offset, limit, total_count: items.length },
  }
}
