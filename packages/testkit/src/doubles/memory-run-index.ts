import {
  checkOptions,
  DataError,
  episodeId,
  NotFoundError,
  parseRecord,
  runEventSchema,
  runRecordSchema,
  StateError,
  stringifyRecord,
  unknownName,
  type ClaimOptions,
  type RunEvent,
  type RunIndex,
  type RunRecord,
  type RunWriter,
} from '@tiltyard/core'

import {
  entriesUpTo,
  episodesOf,
  groupsOf,
  isWanted,
  runDetails,
  runSummary,
  type MemoryRun,
} from './memory-run.ts'

export interface MemoryRunIndex extends RunIndex {
  /** Another index over the same runs, as another process would open it. */
  reopen(): MemoryRunIndex
  /** All events of a run as they were appended, epochs apart. */
  events(run: string): readonly RunEvent[]
}

/** A run index that keeps everything in memory. An event is a copy of what was appended, by way of its text. */
export function memoryRunIndex(): MemoryRunIndex {
  return indexOver(new Map())
}

function indexOver(runs: Map<string, MemoryRun>): MemoryRunIndex {
  const runOf = (name: string): MemoryRun => {
    const run = runs.get(name)
    if (run === undefined) throw new NotFoundError(unknownName('run', name, [...runs.keys()]))
    return run
  }
  return {
    specVersion: 'run-index/1',
    name: 'memory',
    async claim(given, options) {
      const record = checkOptions('run record', runRecordSchema, given)
      return writerOf(claimed(runs, record, options, runOf), options.expect !== 'join')
    },
    async *runs() {
      const names = [...runs.keys()].toSorted((a, b) => (a < b ? -1 : 1))
      for (const name of names) yield runSummary(runOf(name))
    },
    async run(name) {
      return runDetails(runOf(name))
    },
    async *groups(run, filter = {}) {
      const { split, evaluation, step } = filter
      for (const group of groupsOf(runOf(run))) {
        const { key } = group
        const isOther =
          (split !== undefined && key.split !== split) ||
          (evaluation !== undefined && key.evaluation !== evaluation) ||
          (step !== undefined && key.step !== step)
        if (!isOther) yield group
      }
    },
    async *episodes(run, filter = {}) {
      for (const { summary } of episodesOf(runOf(run))) if (isWanted(summary, filter)) yield summary
    },
    async *records(run, filter = {}) {
      for (const record of episodesOf(runOf(run)))
        if (isWanted(record.summary, filter)) yield record
    },
    async episode(run, key) {
      const id = episodeId(key)
      const found = episodesOf(runOf(run)).find(({ summary }) => episodeId(summary.key) === id)
      if (found === undefined) throw new NotFoundError(`run "${run}" has no episode ${id}`)
      return found
    },
    async close() {},
    reopen: () => indexOver(runs),
    events: (run) => runOf(run).entries.map(({ event }) => event),
  }
}

function claimed(
  runs: Map<string, MemoryRun>,
  record: RunRecord,
  { expect, resumeAfterStep, takeOver = false }: ClaimOptions,
  runOf: (name: string) => MemoryRun,
): MemoryRun {
  const { name } = record
  if (expect === 'new') {
    if (runs.has(name))
      throw new StateError(`a run "${name}" exists; resume it, or take another name`)
    const run = { record, entries: [], epoch: 1, isAlive: true }
    runs.set(name, run)
    return run
  }
  const run = runOf(name)
  if (expect === 'join') return run
  if (run.isAlive && !takeOver) {
    throw new StateError(`run "${name}" is being written by the writer of epoch ${run.epoch}`)
  }
  if (resumeAfterStep !== undefined) run.entries = entriesUpTo(run.entries, resumeAfterStep)
  run.epoch += 1
  run.isAlive = true
  return run
}

function writerOf(run: MemoryRun, isOwner: boolean): RunWriter {
  const { epoch } = run
  let isClosed = false
  const checkOpen = () => {
    const { name } = run.record
    if (isClosed) throw new StateError(`the writer of run "${name}" is closed`)
    if (epoch < run.epoch)
      throw new StateError(`run "${name}" was taken over by the writer of epoch ${run.epoch}`)
  }
  return {
    epoch,
    async append(event) {
      checkOpen()
      run.entries.push({ epoch, event: copyOf(event) })
    },
    async flush() {
      checkOpen()
    },
    async close() {
      if (isOwner && !isClosed && epoch === run.epoch) run.isAlive = false
      isClosed = true
    },
  }
}

/** @throws DataError when the event has no text that reads back as an event. */
function copyOf(event: RunEvent): RunEvent {
  const result = runEventSchema.safeParse(parseRecord(stringifyRecord(event)))
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new DataError(
    `an event of kind ${event.type} is wrong at ${issue?.path.join('.')}: ${issue?.message}`,
  )
}
