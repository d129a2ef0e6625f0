import {
  ConfigError,
  NotFoundError,
  type Backend,
  type CheckpointEvent,
  type JsonValue,
  type RunDetails,
  type RunIndex,
  type RunRecord,
  type RunWriter,
} from '@tiltyard/core'

import type { RunControl } from '../config/control.ts'
import type { Warning } from '../report.ts'
import { checkIdentity, type Fingerprints } from './identity.ts'

/** A run that this process writes, and where it goes on. */
export interface OpenedRun {
  readonly writer: RunWriter
  readonly resumed: boolean
  /** Steps done before: those that the weights to start from have seen. */
  readonly from: number
  /** The checkpoint to start from; absent: from the beginning. */
  readonly checkpoint?: CheckpointEvent
  /** Sums since the run began. */
  readonly totals: Readonly<Record<string, number>>
  /** What the last step recorded of the dataset. */
  readonly position?: JsonValue
  /** It had come to its end, with its final weights, and no steps were added since. */
  readonly finished: boolean
  readonly warnings: readonly Warning[]
}

export interface OpenRunOptions {
  readonly index: RunIndex
  readonly backend: Backend
  readonly record: RunRecord
  readonly fingerprints: Fingerprints
  /** Steps in all, when known. */
  readonly steps: number | undefined
  readonly control: RunControl
}

/**
 * Claims the run: a new one, or an old one at its newest usable checkpoint.
 * @throws StateError when a new run's name is taken, NotFoundError when there is nothing to resume, ConfigError when it has changed.
 */
export async function openRun(options: OpenRunOptions): Promise<OpenedRun> {
  const { index, record, control } = options
  const signal = control.signal === undefined ? {} : { signal: control.signal }
  const { start = 'new' } = control
  const details = start === 'new' ? undefined : await find(options)
  if (details === undefined) {
    const writer = await index.claim(record, { expect: 'new', ...signal })
    return { writer, resumed: false, from: 0, totals: {}, finished: false, warnings: [] }
  }
  checkIdentity(
    record.name,
    details.record,
    { seed: record.seed, fingerprints: options.fingerprints },
    control.allowChanges ?? [],
  )
  const elsewhere = executorWarnings(details.record, record)
  if (control.exact === true && elsewhere[0] !== undefined)
    throw new ConfigError('exact', [{ at: 'executor', message: elsewhere[0].message }])
  const { chosen, warnings } = await newestUsable(details, options)
  const from = chosen?.step ?? 0
  const finished =
    chosen?.final === true &&
    details.end?.status === 'completed' &&
    from >= (options.steps ?? Infinity)
  const writer = await index.claim(
    { ...record, startedAt: details.record.startedAt },
    {
      expect: 'resume',
      // What a finished run recorded after its last step, the evaluation of its final weights, stays.
      ...(finished ? {} : { resumeAfterStep: from - 1 }),
      takeOver: control.takeOver ?? false,
      ...signal,
    },
  )
  const last = details.steps.find(({ step }) => step === from - 1)
  return {
    writer,
    resumed: true,
    from,
    ...(chosen === undefined ? {} : { checkpoint: chosen }),
    totals: last?.totals ?? {},
    ...(last === undefined ? {} : { position: last.position }),
    finished,
    warnings: [...warnings, ...elsewhere],
  }
}

async function find({ index, record, control }: OpenRunOptions): Promise<RunDetails | undefined> {
  try {
    return await index.run(record.name)
  } catch (error) {
    if (control.start === 'either' && NotFoundError.is(error, 'NOT_FOUND')) return undefined
    throw error
  }
}

/** The checkpoint of the most steps whose parts are all there: its weights, and the record of the step before it. */
async function newestUsable(
  { record, checkpoints, steps }: RunDetails,
  { backend }: OpenRunOptions,
): Promise<{
  readonly chosen: CheckpointEvent | undefined
  readonly warnings: readonly Warning[]
}> {
  const store = backend.checkpoints()
  const recorded = new Set(steps.map(({ step }) => step))
  const candidates = checkpoints
    .filter(({ training, deleted }) => training !== undefined && deleted !== true)
    .toSorted((a, b) => b.step - a.step || Number(b.final ?? false) - Number(a.final ?? false))
  const passed: string[] = []
  for (const candidate of candidates) {
    const { name, step, training } = candidate
    if (step > 0 && !recorded.has(step - 1)) passed.push(`${name} (step ${step} was not recorded)`)
    else if (await store.exists(training!))
      return { chosen: candidate, warnings: olderCheckpoint(record.name, passed, name) }
    else passed.push(`${name} (its weights are gone)`)
  }
  return { chosen: undefined, warnings: olderCheckpoint(record.name, passed, undefined) }
}

function olderCheckpoint(
  run: string,
  passed: readonly string[],
  chosen: string | undefined,
): readonly Warning[] {
  if (passed.length === 0) return []
  const instead = chosen === undefined ? 'the run begins again' : `the run goes on from ${chosen}`
  const message = `unusable checkpoints of "${run}": ${passed.join(', ')}; ${instead}`
  return [{ code: 'older_checkpoint', message }]
}

function executorWarnings(before: RunRecord, now: RunRecord): readonly Warning[] {
  const was = before.versions['executor']
  const is = now.versions['executor']
  if (was === undefined || was === is) return []
  const message = `the run was begun on "${was}" and goes on on "${is}": the same bytes are promised on one executor only`
  return [{ code: 'other_executor', message }]
}
