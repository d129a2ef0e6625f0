import {
  ByteWriter,
  parquetWriteRows,
  type BasicType,
  type SchemaElement,
  type Writer,
} from 'hyparquet-writer'

import type { Column, Row, Table } from './table.ts'

export type WriteChunk = (chunk: Uint8Array) => Promise<void>

/** Writes a table as one Parquet file, a group of rows at a time. */
export async function writeParquet(
  table: Table,
  rows: AsyncIterable<Row>,
  write: WriteChunk,
): Promise<void> {
  await parquetWriteRows({
    writer: chunkWriter(write),
    rows: cells(table.columns, rows),
    columns: table.columns.map(({ name }) => ({ name })),
    schema: schemaOf(table.columns),
    rowGroupSize: table.rowsAtOnce,
    createdBy: '@tiltyard/run-export',
  })
}

/** Hands on what was written after each group of rows and at the end. */
function chunkWriter(write: WriteChunk): Writer {
  const writer = new ByteWriter()
  const handOn = async () => {
    const chunk = writer.getBytes().slice()
    writer.index = 0
    if (chunk.length > 0) await write(chunk)
  }
  return Object.assign(writer, { flush: handOn, finish: handOn })
}

async function* cells(
  columns: readonly Column[],
  rows: AsyncIterable<Row>,
): AsyncGenerator<Record<string, unknown>> {
  for await (const row of rows)
    yield Object.fromEntries(columns.map(({ name, type }) => [name, cellOf(type, row[name])]))
}

/** null is an empty cell; a list is a plain array. */
function cellOf(type: Column['type'], cell: unknown): unknown {
  if (cell === undefined) return null
  return typeof type === 'object' ? Array.from(cell as Float32Array) : cell
}

const elements: Readonly<
  Record<Exclude<BasicType & Column['type'], object>, Omit<SchemaElement, 'name'>>
> = {
  STRING: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  INT32: { type: 'INT32' },
  DOUBLE: { type: 'DOUBLE' },
  BOOLEAN: { type: 'BOOLEAN' },
  TIMESTAMP: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  JSON: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
}

function schemaOf(columns: readonly Column[]): SchemaElement[] {
  return [{ name: 'root', num_children: columns.length }, ...columns.flatMap(elementsOf)]
}

function elementsOf({ name, type, required }: Column): readonly SchemaElement[] {
  const repetition_type = required === true ? 'REQUIRED' : 'OPTIONAL'
  if (typeof type === 'string') return [{ name, ...elements[type], repetition_type }]
  return [
    { name, repetition_type, converted_type: 'LIST', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', type: type.list, repetition_type: 'REQUIRED' },
  ]
}
