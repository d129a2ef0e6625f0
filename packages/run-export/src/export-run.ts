import { checkOptions, type EpisodeFilter, type RunIndex } from '@tiltyard/core'
import { z } from 'zod'

import { jsonLine } from './json-lines.ts'
import { writeParquet, type WriteChunk } from './parquet.ts'
import { recordsTable, sequencesTable } from './record-tables.ts'
import { episodesTable, groupsTable, metricsTable } from './summary-tables.ts'
import type { Row, Table } from './table.ts'

/** The tables, with their columns and what stands in them. */
export const exportTables: readonly Table[] = [
  episodesTable,
  groupsTable,
  metricsTable,
  recordsTable,
  sequencesTable,
]

const tableNames = ['episodes', 'groups', 'metrics', 'records', 'sequences'] as const
export type ExportTable = (typeof tableNames)[number]

export const exportFormats = ['jsonl', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

export interface ExportOptions {
  readonly index: RunIndex
  readonly run: string
  readonly table: ExportTable
  readonly format: ExportFormat
  /** Takes the bytes of the file in order; the next ones wait until it resolves. */
  readonly write: WriteChunk
  /** Only these episodes. For `groups` and `metrics` split, evaluation and step count. */
  readonly filter?: EpisodeFilter
  readonly signal?: AbortSignal
}

const optionsSchema = z.strictObject({
  index: z.custom<RunIndex>((index) => typeof index === 'object'),
  run: z.string().min(1),
  table: z.enum(tableNames),
  format: z.enum(exportFormats),
  write: z.custom<WriteChunk>((write) => typeof write === 'function', 'expected a function'),
  filter: z.custom<EpisodeFilter>().optional(),
  signal: z.instanceof(AbortSignal).optional(),
})

/** Characters of JSON lines that are handed on together. */
const CHUNK_CHARS = 256 * 1024

/**
 * Writes one table of a run. Memory is bounded by some hundred to twenty thousand rows, whatever the length of the run.
 * @returns the number of rows.
 * @throws ConfigError, or NotFoundError for a run that doesn't exist; the signal's reason.
 */
export async function exportRun(options: ExportOptions): Promise<number> {
  const {
    index,
    run,
    format,
    write,
    filter = {},
    signal,
  } = checkOptions('exportRun', optionsSchema, options)
  const table = exportTables.find(({ name }) => name === options.table)!
  const counted = countRows(table.rows(index, run, filter), signal)
  if (format === 'parquet') await writeParquet(table, counted.rows, write)
  else await writeLines(table, counted.rows, write)
  return counted.count()
}

function countRows(rows: AsyncIterable<Row>, signal: AbortSignal | undefined) {
  let count = 0
  async function* counting() {
    for await (const row of rows) {
      signal?.throwIfAborted()
      count += 1
      yield row
    }
  }
  return { rows: counting(), count: () => count }
}

async function writeLines(
  table: Table,
  rows: AsyncIterable<Row>,
  write: WriteChunk,
): Promise<void> {
  const encoder = new TextEncoder()
  let text = ''
  for await (const row of rows) {
    text += jsonLine(table, row)
    if (text.length < CHUNK_CHARS) continue
    await write(encoder.encode(text))
    text = ''
  }
  if (text !== '') await write(encoder.encode(text))
}
