/**
 * How fast the run index in a folder appends and answers.
 *
 *     pnpm tsx --conditions=@tiltyard/source test/bench/run-index-fs.ts [--full] [--folder <folder>] [--keep]
 *     pnpm tsx --conditions=@tiltyard/source test/bench/run-index-fs.ts [--full] --read <what --keep left>
 *
 * `--full` is the size of the goals: 1,000,000 episodes in 2,000 steps, about 1.5 GB of disk for some minutes. With
 * `NODE_OPTIONS=--expose-gc` the memory figures are free of garbage.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { fsRunIndex } from '@tiltyard/run-index-fs'

import { report, taken, takenBy } from './run-index/measure.ts'
import { appendRun, readRun, type Size } from './run-index/workload.ts'

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    folder: { type: 'string' },
    keep: { type: 'boolean', default: false },
    read: { type: 'string' },
  },
})
const size: Size = values.full
  ? { episodes: 1_000_000, steps: 2_000 }
  : { episodes: 50_000, steps: 100 }

report('machine', `${cpus().length} × ${cpus()[0]?.model ?? '?'}, Node ${process.version}`)
const folder = values.read ?? (await mkdtemp(join(values.folder ?? tmpdir(), 'tiltyard-bench-')))
const isKept = values.keep || values.read !== undefined
try {
  const index = fsRunIndex({ folder })
  if (values.read === undefined) await appendRun(index, 'bench', size)
  await readRun(index, 'bench', size)
  // A reader that begins with nothing in memory.
  const opened = await takenBy(() => fsRunIndex({ folder }).run('bench'))
  report('overview, first question to a new index', taken(opened))
  if (isKept) report('kept in', folder)
} finally {
  if (!isKept) await rm(folder, { recursive: true })
}
