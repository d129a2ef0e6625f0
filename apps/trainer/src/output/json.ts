import type { Terminal } from '../exit.ts'

/** Machine-readable output goes to stdout alone; nothing else does when it is asked for. */
export function printJson({ stdout }: Terminal, value: unknown): void {
  stdout.write(`${JSON.stringify(value, undefined, 2)}\n`)
}

export function printLines({ stdout }: Terminal, lines: Iterable<string>): void {
  for (const line of lines) stdout.write(`${line}\n`)
}

/** Columns of text, each as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
