import {
  deriveSeed,
  type Backend,
  type CheckpointEvent,
  type CheckpointRef,
  type Learner,
  type Logger,
  type RunWriter,
  type Sampler,
} from '@tiltyard/core'

import type { ResolvedCheckpoints } from '../config/defaults.ts'
import { metricLabel } from '../metrics/numbers.ts'

type CheckpointKind = 'full' | 'rolling' | 'final'

/** A checkpoint whose calls were made. */
export interface SavingCheckpoint {
  /** The sampler of these weights, which a full checkpoint publishes anyway. */
  readonly sampler?: Promise<Sampler>
  /** The record, once all parts are whole. */
  readonly event: Promise<CheckpointEvent>
}

export interface Checkpoints {
  /** What is saved after so many steps. */
  due(step: number): CheckpointKind | undefined
  /** Makes the learner's calls at once, so that they come before any later one. */
  save(step: number, kind: CheckpointKind): SavingCheckpoint
  /** Writes the record, and deletes the rolling checkpoint that it replaces. */
  record(event: CheckpointEvent): Promise<void>
}

export interface CheckpointsOptions {
  readonly run: string
  readonly backend: Backend
  readonly learner: Learner
  readonly writer: RunWriter
  readonly cadence: ResolvedCheckpoints
  /** The checkpoint that the run went on from. */
  readonly resumedFrom?: CheckpointEvent | undefined
  readonly logger: Logger
}

/**
 * Saves by the steps done: a multiple of `every` in full (weights, optimizer, sampler), else a multiple of `rolling` to be able
 * to go on (weights and optimizer; replaced by the next). Names are six digits of the step, and `final`. Nothing is recorded
 * before all of it is whole.
 */
export function createCheckpoints(options: CheckpointsOptions): Checkpoints {
  const { run, backend, learner, writer, cadence, logger } = options
  const store = backend.checkpoints()
  let rolling = isRolling(options.resumedFrom) ? options.resumedFrom : undefined

  const settled = async (
    name: string,
    step: number,
    kind: CheckpointKind,
    stored: string,
    parts: {
      readonly training: Promise<CheckpointRef>
      readonly sampler: Promise<Sampler> | undefined
    },
  ): Promise<CheckpointEvent> => {
    const [training, sampler] = await Promise.all([parts.training, parts.sampler])
    const sampling = sampler === undefined ? undefined : await placeOf(sampler, backend, stored)
    return {
      type: 'checkpoint',
      step,
      name,
      training,
      ...(sampling === undefined ? {} : { sampling }),
      ...(kind === 'final' ? { final: true } : {}),
    }
  }

  const removeRolling = async () => {
    const old = rolling
    rolling = undefined
    if (old?.training === undefined) return
    try {
      await store.delete(old.training)
      await writer.append({ ...old, deleted: true })
    } catch (error) {
      logger.warn('a rolling checkpoint was not deleted', {
        run,
        name: old.name,
        error: String(error),
      })
    }
  }

  return {
    due(step) {
      if (step === 0) return cadence.atStart ? 'full' : undefined
      if (cadence.every > 0 && step % cadence.every === 0) return 'full'
      if (cadence.rolling > 0 && step % cadence.rolling === 0) return 'rolling'
      return undefined
    },
    save(step, kind) {
      const name = kind === 'final' ? 'final' : String(step).padStart(6, '0')
      const stored = storedName(run, writer.epoch, name)
      const ttlSeconds = {
        full: cadence.ttlSeconds,
        rolling: cadence.rollingTtlSeconds,
        final: undefined,
      }[kind]
      const ttl = ttlSeconds === undefined ? {} : { ttlSeconds }
      const training = learner.save(stored, ttl)
      const sampler =
        kind === 'rolling' ? undefined : learner.publish({ name: stored, step, ...ttl })
      const event = settled(name, step, kind, stored, { training, sampler })
      event.catch(() => {})
      return { ...(sampler === undefined ? {} : { sampler }), event }
    },
    async record(event) {
      // What came before it must be durable first: a checkpoint that is found implies its step.
      await writer.flush()
      await writer.append(event)
      await writer.flush()
      if (isRolling(event) || event.final === true) await removeRolling()
      if (isRolling(event)) rolling = event
    },
  }
}

/**
 * A name that every backend takes and no other checkpoint has: the epoch keeps apart what a killed process may still have saved
 * under the same step, a hash those runs whose names are written alike.
 */
function storedName(run: string, epoch: number, name: string): string {
  const label = metricLabel(run).slice(0, 100)
  const distinct = label === run ? label : `${label}-${deriveSeed(0, run).toString(16)}`
  return `${distinct}-e${epoch}-${name}`
}

function isRolling(event: CheckpointEvent | undefined): boolean {
  return event !== undefined && event.sampling === undefined && event.final !== true
}

/** Where a published sampler is kept: as it says itself, or as its backend lists it. */
async function placeOf(
  { checkpoint }: Sampler,
  backend: Backend,
  name: string,
): Promise<CheckpointRef | undefined> {
  if (checkpoint !== undefined) return checkpoint
  const listed = await backend.checkpoints().list()
  const found = listed.findLast((info) => info.name === name && info.kind === 'sampling')
  return found === undefined ? undefined : { path: found.path, kind: found.kind }
}
