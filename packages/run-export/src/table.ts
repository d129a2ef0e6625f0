import type { EpisodeFilter, RunIndex } from '@tiltyard/core'

/** Types of columns, by their Parquet names; a list holds numbers of its type. */
export type ColumnType =
  | 'STRING'
  | 'INT32'
  | 'DOUBLE'
  | 'BOOLEAN'
  | 'TIMESTAMP'
  | 'JSON'
  | { readonly list: 'INT32' | 'FLOAT' }

export interface Column {
  readonly name: string
  readonly type: ColumnType
  /** What stands in it. Every column may be empty (null) unless `required`. */
  readonly about: string
  readonly required?: true
}

/** A value of a row by its column's type; undefined where there is none. JSON columns take any value that JSON has a text for. */
export type Row = Readonly<Record<string, unknown>>

export const tableNames = ['episodes', 'groups', 'metrics', 'records', 'sequences'] as const
export type ExportTable = (typeof tableNames)[number]

export interface Table {
  readonly name: ExportTable
  /** What a row is. */
  readonly about: string
  readonly columns: readonly Column[]
  /** Rows that are written together; bounds the memory of an export. */
  readonly rowsAtOnce: number
  rows(index: RunIndex, run: string, filter: EpisodeFilter): AsyncIterable<Row>
}
