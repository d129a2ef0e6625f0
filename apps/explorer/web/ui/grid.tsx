import type { CSSProperties, ReactNode } from 'react'

import { Nothing } from './state.tsx'
import { Rows } from './virtual.tsx'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ReactNode
  /** As CSS grids have it: `1fr`, `80px`. */
  readonly width: string
  /** Not there on a phone. */
  readonly wideOnly?: boolean
  readonly end?: boolean
}

export interface GridProps<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** What is said of no rows. */
  readonly empty: ReactNode
}

/** A table of any length. */
export function Grid<Row>({ label, columns, rows, keyOf, empty }: GridProps<Row>) {
  if (rows.length === 0) return <Nothing>{empty}</Nothing>
  const widths = (some: readonly Column<Row>[]) => some.map(({ width }) => width).join(' ')
  const style = {
    '--columns': widths(columns),
    '--narrow-columns': widths(columns.filter(({ wideOnly }) => wideOnly !== true)),
  } as CSSProperties
  const classOf = ({ end, wideOnly }: Column<Row>) =>
    `${end === true ? 'end' : ''} ${wideOnly === true ? 'not-narrow' : ''}`
  return (
    <div
      className="grid"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      style={style}
    >
      <div role="rowgroup">
        <div className="row titles" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <span key={column.title} role="columnheader" className={classOf(column)}>
              {column.title}
            </span>
          ))}
        </div>
      </div>
      <Rows
        role="rowgroup"
        count={rows.length}
        estimate={() => 43}
        keyOf={(index) => keyOf(rows[index]!)}
        row={(index) => (
          <div className="row" role="row" aria-rowindex={index + 2}>
            {columns.map((column) => (
              <span key={column.title} role="cell" className={classOf(column)}>
                {column.cell(rows[index]!)}
              </span>
            ))}
          </div>
        )}
      />
    </div>
  )
}
