import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'

import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import type { RunEvent } from '@tiltyard/core'
import { exportFormats, exportRun, exportTables } from '@tiltyard/run-export'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { runOk } from '../../support/run.ts'

const EPISODES = 500

const commandLine = fileURLToPath(new URL('../../../apps/trainer/dist/cli.js', import.meta.url))

let folder: string
let database: DuckDBConnection
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tiltyard-export-'))
  const index = fsRunIndex({ folder: join(folder, 'runs') })
  for (const name of ['one', 'two']) {
    const writer = await index.claim(
      { version: 1, name, startedAt: 1, seed: 1, config: {}, fingerprints: {}, versions: {} },
      { expect: 'new' },
    )
    for (let number = 0; number < EPISODES; number += 1)
      for (const event of episodeEvents(number)) await writer.append(event)
    await writer.close()
  }
  for (const { name } of exportTables) {
    for (const format of exportFormats) {
      const file = createWriteStream(join(folder, `${name}.${format}`))
      await exportRun({
        index,
        run: 'one',
        table: name,
        format,
        write: (chunk) => new Promise((resolve) => file.write(chunk, () => resolve())),
      })
      file.end()
      await finished(file)
    }
  }
  database = await (await DuckDBInstance.create()).connect()
})
afterAll(async () => {
  database.closeSync()
  await rm(folder, { recursive: true })
})

const query = async (sql: string) =>
  (await database.runAndReadAll(sql.replaceAll('$', `${folder}/`))).getRowObjectsJson()

describe.each(exportFormats)('as %s', (format) => {
  test('DuckDB counts, groups and filters', async () => {
    const [result] = await query(
      `select count(*) as n, avg(reward) as reward, count(*) filter (where "end" = 'turns') as cut from '$episodes.${format}'`,
    )
    expect(result).toEqual({ n: String(EPISODES), reward: 0.5, cut: String(EPISODES / 10) })
  })

  test('scores open by name, lists by place', async () => {
    expect(
      await query(
        `select scores->'answer'->>'value' as score, count(*) as n from '$episodes.${format}' group by 1 order by 1`,
      ),
    ).toEqual([
      { score: '0', n: String(EPISODES / 2) },
      { score: '1', n: String(EPISODES / 2) },
    ])
    expect(
      await query(
        `select len(ids) as length, ids[3]::int as third, list_sum(advantages) as sum from '$sequences.${format}' order by id limit 1`,
      ),
    ).toEqual([{ length: '4', third: -1, sum: 1 }])
  })

  test('records join episodes by id', async () => {
    const [result] = await query(
      `select count(*) as n from '$records.${format}' join '$episodes.${format}' using (id) where messages::json->0->>'role' = 'user'`,
    )
    expect(result).toEqual({ n: String(EPISODES) })
  })
})

test('DuckDB reads what the command line exports, of several runs at once', async () => {
  const args = ['index', 'export', '--index', join(folder, 'runs'), '--out', join(folder, 'tables')]
  await runOk(process.execPath, [commandLine, ...args, '--step', '3'], { cwd: folder })
  expect(
    await query(
      `select run, count(*) as n, sum(len(ids)) as tokens from '$tables/episodes.parquet' join '$tables/sequences.parquet' using (run, id) group by 1 order by 1`,
    ),
  ).toEqual([
    { run: 'one', n: String(EPISODES / 5), tokens: String((EPISODES / 5) * 4) },
    { run: 'two', n: String(EPISODES / 5), tokens: String((EPISODES / 5) * 4) },
  ])
})

function episodeEvents(number: number): readonly RunEvent[] {
  const key = { split: 'train', step: number % 5, group: 0, member: number, attempt: 0 } as const
  return [
    {
      type: 'episode',
      key,
      task: `task-${number % 7}`,
      fingerprint: 'f',
      seed: number,
      startedAt: 1_764_000_000_000,
      ms: 1,
      end: number % 10 === 0 ? { kind: 'cut', by: 'turns' } : { kind: 'completed' },
      messages: [{ role: 'user', content: 'Who is it?' }],
      tools: [],
      calls: [],
      replies: [],
      sequences: [
        {
          ids: Int32Array.of(5, 6, -1, 7),
          logprobs: Float32Array.of(0, -0.5, 0, -0.25),
          mask: Int32Array.of(0, 1, 0, 1),
        },
      ],
    },
    {
      type: 'score',
      key,
      scores: { answer: { value: number % 2 } },
      metrics: {},
      reward: { reward: number % 2 },
    },
    {
      type: 'training',
      key,
      step: key.step,
      advantage: 0.5,
      data: [{ sequence: 0, length: 3, trained: 2 }],
    },
  ]
}
