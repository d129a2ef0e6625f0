import { checkOptions, type EpisodeFilter, type RunIndex } from '@tiltyard/core'
import { z } from 'zod'

import { jsonLine } from './json-lines.ts'
import { writeParquet, type WriteChunk } from './parquet.ts'
import { recordsTable, sequencesTable } from './record-tables.ts'
import { episodesTable, groupsTable, metricsTable } from './summary-tables.ts'
import { tableNames, type ExportTable, type Row, type Table } from './table.ts'

/** The tables, with their columns and what stands in them. */
export const exportTables: readonly Table[] = [
  episodesTable,
  groupsTable,
  metricsTable,
  recordsTable,
  sequencesTable,
]

export const exportFormats = ['jsonl', 'parquet'] as const
export type ExportFormat = (typeof exportFormats)[number]

export interface ExportOptions {
  readonly index: RunIndex
  /** One run, or several whose rows follow one another; the column `run` tells them apart. */
  readonly run: string | readonly string[]
  readonly table: ExportTable
  readonly format: ExportFormat
  /** Takes the bytes of the file in order; the next ones wait until it resolves. */
  readonly write: WriteChunk
  /** Only these episodes. For `groups` split, evaluation, step, group and task count, for `metrics` the first three. */
  readonly filter?: EpisodeFilter
  readonly signal?: AbortSignal
}

const optionsSchema = z.strictObject({
  index: z.custom<RunIndex>((index) => typeof index === 'object'),
  run: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)], {
    error: 'expected the name of a run, or several',
  }),
  table: z.enum(tableNames),
  format: z.enum(exportFormats),
  write: z.custom<WriteChunk>((write) => typeof write === 'function', 'expected a function'),
  filter: z.custom<EpisodeFilter>().optional(),
  signal: z.instanceof(AbortSignal).optional(),
})

/** Characters of JSON lines that are handed on together. */
const CHUNK_CHARS = 256 * 1024

/**
 * Writes one table of a run, or of several. Memory is bounded by some hundred to twenty thousand rows, whatever the length of the run.
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
  const runs = typeof run === 'string' ? [run] : run
  const counted = countRows(rowsOf(table, runs, index, filter), signal)
  if (format === 'parquet') await writeParquet(table, counted.rows, write)
  else await writeLines(table, counted.rows, write)
  return counted.count()
}

async function* rowsOf(
  table: Table,
  runs: readonly string[],
  index: RunIndex,
  filter: EpisodeFilter,
): AsyncGenerator<Row> {
  for (const run of runs) yield* table.rows(index, run, filter)
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
