import type { Row, Table } from './table.ts'

/** A row as one line of JSON; empty cells are left out. Dates are ISO text, lists are arrays of numbers, NaN is null. */
export function jsonLine({ columns }: Table, row: Row): string {
  const cells = columns.map(({ name }) => [name, plain(row[name])] as const)
  return `${JSON.stringify(Object.fromEntries(cells))}\n`
}

function plain(cell: unknown): unknown {
  return ArrayBuffer.isView(cell) ? Array.from(cell as Float32Array) : cell
}
