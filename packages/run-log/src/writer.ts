import {
  StateError,
  StoreError,
  TiltyardError,
  summarizeError,
  type Logger,
  type RunEvent,
  type RunWriter,
} from '@tiltyard/core'

import { forEach } from './ahead.ts'
import { createBatch, type Batch, type SealedBatch } from './batch.ts'
import type { BlobStore } from './blobs.ts'
import { aliveKey, claimKey, type WriterId } from './layout.ts'
import type { Mark } from './log.ts'
import { createSigns } from './signs.ts'
import { createStreams } from './streams.ts'
import type { Views } from './views.ts'

export interface WriterOptions {
  readonly blobs: BlobStore
  readonly run: string
  /** The run's encoded name. */
  readonly folder: string
  readonly writer: WriterId
  /** Last completed step before this writer. */
  readonly step: number | undefined
  /** Absent where blobs can't grow. */
  readonly views: Views | undefined
  readonly pace: WriterPace
  readonly logger: Logger
  /** Called once, when it is closed. */
  readonly onClose: () => void
}

export interface WriterPace {
  /** Longest time until an event is durable without a flush, in milliseconds. */
  readonly batchMs: number
  /** Characters that make a batch. */
  readonly batchSize: number
  /** Characters that may wait for the store; beyond it `append` waits. */
  readonly bufferSize: number
  readonly signOfLifeMs: number
}

/** Streams of a batch that are written at the same time. */
const WRITES_AT_ONCE = 8

interface PendingBatch {
  readonly number: number
  readonly sealed: SealedBatch
  readonly log: string
}

export function createWriter(options: WriterOptions): RunWriter {
  const { blobs, run, folder, writer, views, pace, logger } = options
  const streams = createStreams(blobs, writer, logger)
  let mark: Mark =
    options.step === undefined ? { type: 'mark' } : { type: 'mark', step: options.step }
  let open: Batch = createBatch()
  let batches = 0
  /** A batch that is being written, or whose writing failed. */
  let pending: PendingBatch | undefined
  let committing: Promise<void> | undefined
  let failure: Error | undefined
  let closing: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  const signs = createSigns({
    give: (signal) => blobs.replace(aliveKey(folder, writer), new Uint8Array(), signal),
    everyMs: pace.signOfLifeMs,
    onFailure: (error) =>
      logger.warn('a sign of life was not written', { run, error: summarizeError(error).message }),
  })

  const takeBatch = async (): Promise<PendingBatch> => {
    const batch = open
    // All that was appended so far is in this batch, so the mark holds for it.
    const markLine = `${JSON.stringify(mark)}\n`
    const isOver = mark.closed === true
    const number = batches
    open = createBatch()
    batches += 1
    const sealed = await batch.seal()
    return { number, sealed, log: sealed.log === '' && !isOver ? '' : sealed.log + markLine }
  }
  const checkFence = async () => {
    const next = claimKey(folder, { epoch: writer.epoch + 1, number: 0 })
    if ((await blobs.read(next)) === undefined) return
    throw new StateError(
      `run "${run}" was taken by its writer ${writer.epoch + 1}; of writer ${writer.epoch} nothing more is kept`,
      { details: { run, epoch: writer.epoch } },
    )
  }
  /** Records before lines, the outline before both, the log last: what a reader finds is whole. */
  const write = async ({ number, sealed, log }: PendingBatch) => {
    if (sealed.outline !== '') await streams.text(`${folder}/outline`, number, sealed.outline)
    await forEach(sealed.pieces, WRITES_AT_ONCE, (piece) => streams.piece(folder, number, piece))
    if (log !== '') await streams.text(`${folder}/log`, number, log)
    await views?.append(sealed.metrics)
    await streams.done(number)
  }
  const commitNext = async () => {
    clearTimeout(timer)
    timer = undefined
    if (isFence(failure)) throw failure
    try {
      pending ??= await takeBatch()
      await checkFence()
      await write(pending)
      pending = undefined
      failure = undefined
    } catch (error) {
      failure = isFence(error) ? error : lost(error)
      throw failure
    }
  }
  const lost = (cause: unknown) => {
    const events = (pending?.sealed.events ?? 0) + open.events
    return new StoreError(
      `${events} events of run "${run}" are not durable yet: ${summarizeError(cause).message}`,
      { cause, details: { run, events } },
    )
  }
  /** Writes the batch that failed, or else the open one. One at a time. */
  const commit = (): Promise<void> => {
    committing ??= commitNext().finally(() => {
      committing = undefined
      schedule()
    })
    return committing
  }
  const schedule = () => {
    if (failure !== undefined || open.events === 0) return
    if (open.size >= pace.batchSize) commit().catch(() => {})
    else timer ??= setTimeout(() => void commit().catch(() => {}), pace.batchMs)
  }
  const isBehind = () => committing !== undefined || pending !== undefined || open.events > 0
  const flush = async () => {
    while (isBehind()) await commit()
  }
  const close = async () => {
    try {
      await flush()
      mark = { ...mark, closed: true }
      await commit()
    } catch (error) {
      // Fenced with nothing to lose: the run is the newer writer's to close.
      if (!isFence(error) || open.events > 0 || (pending?.sealed.events ?? 0) > 0) throw error
    } finally {
      clearTimeout(timer)
      await signs.stop()
      options.onClose()
    }
  }
  return {
    epoch: writer.epoch,
    async append(event) {
      if (closing !== undefined) throw new StateError(`the writer of run "${run}" is closed`)
      if (failure !== undefined) throw failure
      open.add(event)
      mark = markAfter(mark, event)
      schedule()
      if (open.size >= pace.bufferSize) await commit()
    },
    flush,
    close() {
      closing ??= close()
      return closing
    },
  }
}

function markAfter(mark: Mark, event: RunEvent): Mark {
  if (event.type === 'step') return { ...mark, step: Math.max(mark.step ?? event.step, event.step) }
  return event.type === 'end' ? { ...mark, end: event.status } : mark
}

function isFence(error: unknown): error is TiltyardError {
  return TiltyardError.is(error, 'STATE')
}
