import { stringifyRecord, type MetricsEvent, type RunRecord } from '@tiltyard/core'

import type { BlobStore, GrowingBlobs } from './blobs.ts'

/**
 * Files for people and their tools, kept where blobs can grow: `run.json`, `metrics.jsonl` (equal for equal seeds) and `timing.jsonl`.
 * They repeat what the log holds; a claim makes them anew.
 */
export interface Views {
  append(metrics: readonly MetricsEvent[]): Promise<void>
}

export interface ViewsOptions {
  readonly blobs: BlobStore
  readonly growing: GrowingBlobs
  /** The run's encoded name. */
  readonly folder: string
  readonly record: RunRecord
  /** What was recorded before. */
  readonly metrics: readonly MetricsEvent[]
}

export async function createViews(options: ViewsOptions): Promise<Views> {
  const { blobs, growing, folder, record, metrics } = options
  const files = [
    { key: `${folder}/metrics.jsonl`, text: metricsText },
    { key: `${folder}/timing.jsonl`, text: timingText },
  ]
  const lengths = new Map<string, number>()
  await blobs.replace(`${folder}/run.json`, Buffer.from(`${JSON.stringify(record, null, 2)}\n`))
  for (const { key, text } of files) {
    const content = Buffer.from(text(metrics))
    await blobs.replace(key, content)
    lengths.set(key, content.length)
  }
  return {
    async append(added) {
      const writes = files.map(({ key, text }) => ({ key, content: Buffer.from(text(added)) }))
      for (const { key, content } of writes)
        if (content.length > 0) await growing.write(key, lengths.get(key) ?? 0, content)
      // Only now: after a failure the same bytes go to the same place again.
      for (const { key, content } of writes)
        lengths.set(key, (lengths.get(key) ?? 0) + content.length)
    },
  }
}

function metricsText(metrics: readonly MetricsEvent[]): string {
  return metrics.map((event) => line(event, event.values)).join('')
}

/** Steps without times have no line. */
function timingText(metrics: readonly MetricsEvent[]): string {
  return metrics
    .filter(({ timing }) => Object.keys(timing).length > 0)
    .map((event) => line(event, event.timing))
    .join('')
}

function line(event: MetricsEvent, numbers: MetricsEvent['values']): string {
  const { split, evaluation, step } = event
  return `${stringifyRecord({ split, evaluation, step, ...numbers })}\n`
}
