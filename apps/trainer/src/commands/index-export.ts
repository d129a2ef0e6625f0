import { constants } from 'node:fs'
import { access, mkdir, open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

import { ConfigError, type EpisodeFilter, NotFoundError, type RunIndex } from '@tiltyard/core'
import {
  type ExportFormat,
  exportFormats,
  exportRun,
  type ExportTable,
  exportTables,
} from '@tiltyard/run-export'
import { type Command, Option } from 'commander'

import type { Terminal } from '../exit.ts'
import { printJson, printLines, table } from '../output/json.ts'
import { filterOf, type FilterFlags, withFilter } from './episode-filter.ts'
import { runNames } from './runs.ts'

export interface ExportFlags extends FilterFlags {
  readonly out: string
  readonly format: ExportFormat
  readonly table?: readonly ExportTable[]
  readonly overwrite?: boolean
  readonly json?: boolean
}

interface ExportedFile {
  readonly table: ExportTable
  readonly path: string
  readonly rows: number
  readonly bytes: number
}

/** Adds what `index export` takes, but for the place of the runs. */
export function exportOptions(command: Command): Command {
  const tables = exportTables.map(({ name }) => name)
  return withFilter(
    command
      .argument('[run...]', 'default: all runs')
      .requiredOption('--out <folder>', 'where the files go, one for each table')
      .addOption(new Option('--format <name>').choices(exportFormats).default('parquet'))
      .addOption(new Option('--table <name...>', 'default: all tables').choices(tables))
      .option('--overwrite', 'replace files of an earlier export')
      .option('--json', 'tell of the files as JSON'),
  )
}

/** Writes each table into a file of its own: `episodes.parquet`, `groups.parquet`… */
export async function exportRuns(
  index: RunIndex,
  named: readonly string[],
  flags: ExportFlags,
  terminal: Terminal,
): Promise<void> {
  const { out, format, overwrite = false } = flags
  const runs = named.length === 0 ? await runNames(index) : named
  if (runs.length === 0) throw new NotFoundError(`there are no runs in ${index.name}`)
  // Before anything is written: a name that is wrong should leave no half of an export.
  for (const run of named) await index.run(run)
  const wanted = exportTables.filter(({ name }) => flags.table?.includes(name) ?? true)
  const files = wanted.map(({ name }) => ({ name, path: join(out, `${name}.${format}`) }))
  if (!overwrite) await refuseExisting(files.map(({ path }) => path))
  await mkdir(out, { recursive: true })

  const written: ExportedFile[] = []
  for (const { name, path } of files) {
    const size = await writeWhole(path, (write) =>
      exportRun({
        index,
        run: runs,
        table: name,
        format,
        filter: filterOf(flags) satisfies EpisodeFilter,
        write,
        signal: terminal.interrupts.soft,
      }),
    )
    written.push({ table: name, path, ...size })
  }
  if (flags.json === true) return printJson(terminal, { runs, format, files: written })
  printLines(
    terminal,
    table(written.map(({ path, rows, bytes }) => [path, `${rows} rows`, `${bytes} bytes`])),
  )
}

async function refuseExisting(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const exists = await access(path, constants.F_OK).then(
      () => true,
      () => false,
    )
    if (exists) {
      const message = 'it exists; choose another folder, or replace it with --overwrite'
      throw new ConfigError('--out', [{ at: path, message }])
    }
  }
}

/** A file appears under its name once it is whole. */
async function writeWhole(
  path: string,
  fill: (write: (chunk: Uint8Array) => Promise<void>) => Promise<number>,
): Promise<{ readonly rows: number; readonly bytes: number }> {
  const unfinished = `${path}.unfinished`
  const file = await open(unfinished, 'w')
  try {
    let bytes = 0
    const rows = await fill(async (chunk) => {
      bytes += chunk.length
      await file.writeFile(chunk)
    })
    await file.close()
    await rename(unfinished, path)
    return { rows, bytes }
  } catch (error) {
    await file.close()
    await rm(unfinished, { force: true })
    throw error
  }
}
