import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { recordRuns } from '../support/recorded-runs.ts'
import { run } from '../support/terminal.ts'

let folder: string
let out: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-export-'))
  await recordRuns(join(folder, 'runs'), ['desk', 'shop/1'])
})
afterAll(() => rm(folder, { recursive: true }))
let exports = 0
beforeEach(() => {
  out = join(folder, `out-${(exports += 1)}`)
})

const exporting = (...args: readonly string[]) =>
  run(['index', 'export', ...args, '--index', join(folder, 'runs'), '--out', out])
const linesOf = async (table: string) =>
  (await readFile(join(out, `${table}.jsonl`), 'utf8'))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('all runs go into one file for each table, the column run tells them apart', async () => {
  const { code, stderr } = await exporting('--format', 'jsonl')
  expect([code, stderr]).toEqual([0, ''])
  expect((await readdir(out)).toSorted()).toEqual([
    'episodes.jsonl',
    'groups.jsonl',
    'metrics.jsonl',
    'records.jsonl',
    'sequences.jsonl',
  ])
  const episodes = await linesOf('episodes')
  expect(episodes.map((row) => `${String(row['run'])} ${String(row['id'])}`)).toEqual(
    ['desk', 'shop/1'].flatMap((name) =>
      [0, 1].flatMap((step) =>
        ['g0/m0', 'g0/m1', 'g1/m0', 'g1/m1'].map((id) => `${name} train/step-000${step}/${id}/a0`),
      ),
    ),
  )
})

test('Parquet is what is written when nothing is said', async () => {
  const { stdout } = await exporting('desk', '--table', 'groups', 'metrics')
  expect((await readdir(out)).toSorted()).toEqual(['groups.parquet', 'metrics.parquet'])
  const bytes = await readFile(join(out, 'groups.parquet'))
  expect([bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()]).toEqual(['PAR1', 'PAR1'])
  expect(stdout).toMatch(/groups\.parquet +4 rows +\d+ bytes\n/)
})

test('--json tells runs, files, rows and bytes, and nothing else', async () => {
  const { stdout } = await exporting('desk', '--table', 'episodes', '--json')
  const path = join(out, 'episodes.parquet')
  expect(JSON.parse(stdout)).toEqual({
    runs: ['desk'],
    format: 'parquet',
    files: [{ table: 'episodes', path, rows: 8, bytes: (await readFile(path)).length }],
  })
})

test.each([
  [
    ['--step', '1'],
    ['desk 1 g0 m0', 'desk 1 g0 m1', 'desk 1 g1 m0', 'desk 1 g1 m1'],
  ],
  [
    ['--task', 'task-1', '--min-reward', '0.5'],
    ['desk 0 g1 m1', 'desk 1 g1 m1'],
  ],
  [
    ['--group', '0', '--max-reward', '0'],
    ['desk 0 g0 m0', 'desk 1 g0 m0'],
  ],
  [
    ['--step', '1', '--no-trained'],
    ['desk 1 g0 m0', 'desk 1 g1 m0'],
  ],
  [
    ['--step', '1', '--trained'],
    ['desk 1 g0 m1', 'desk 1 g1 m1'],
  ],
  [['--split', 'eval'], []],
  [['--end', 'failed'], []],
])('%j chooses episodes and their records', async (filter, expected) => {
  await exporting('desk', '--format', 'jsonl', ...filter)
  for (const table of ['episodes', 'records', 'sequences']) {
    const rows = await linesOf(table)
    expect(
      rows.map(({ run: name, step, group, member }) =>
        [name, step, `g${String(group)}`, `m${String(member)}`].join(' '),
      ),
    ).toEqual(expected)
  }
})

test('groups follow the filters that a group has, metrics those of a step', async () => {
  await exporting('desk', '--format', 'jsonl', '--step', '0', '--task', 'task-1', '--end', 'failed')
  expect((await linesOf('groups')).map(({ step, task }) => [step, task])).toEqual([[0, 'task-1']])
  expect((await linesOf('metrics')).map(({ step, name }) => [step, name])).toEqual([
    [0, 'loss'],
    [0, 'step:ms'],
  ])
})

describe('nothing half-made and nothing of others is left', () => {
  test('a run that is not there is told before anything is written', async () => {
    const { code, stderr } = await exporting('desk', 'dsek')
    expect(stderr).toContain('unknown run "dsek"; did you mean "desk"?')
    expect(code).toBe(1)
    await expect(readdir(out)).rejects.toThrow('ENOENT')
  })

  test('files that exist are kept unless they may be replaced', async () => {
    await exporting('desk', '--table', 'groups')
    await writeFile(join(out, 'groups.parquet'), 'mine')
    const { code, stderr } = await exporting('desk', '--table', 'episodes', 'groups')
    expect(stderr).toContain(
      'groups.parquet: it exists; choose another folder, or replace it with --overwrite',
    )
    expect(code).toBe(2)
    expect(await readdir(out)).toEqual(['groups.parquet'])
    expect(await readFile(join(out, 'groups.parquet'), 'utf8')).toBe('mine')
    expect((await exporting('desk', '--table', 'groups', '--overwrite')).code).toBe(0)
    expect(await readFile(join(out, 'groups.parquet'), 'latin1')).toMatch(/^PAR1/)
  })

  test('an export that is interrupted leaves no file', async () => {
    const { code } = await run(
      ['index', 'export', 'desk', '--index', join(folder, 'runs'), '--out', out],
      { interrupted: true },
    )
    expect(code).toBe(130)
    expect(await readdir(out)).toEqual([])
  })
})

test.each([
  [['--format', 'csv'], 'Allowed choices are jsonl, parquet'],
  [['--table', 'episode'], 'Allowed choices are episodes, groups, metrics, records, sequences'],
  [['--min-reward', 'much'], 'expected a number, got "much"'],
  [['--stepp', '1'], 'Did you mean --step?'],
])('%j is told as a mistake', async (args, message) => {
  const { code, stderr } = await exporting('desk', ...args)
  expect(stderr).toContain(message)
  expect(code).toBe(2)
})
