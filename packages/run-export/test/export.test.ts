import type { EpisodeEvent, EpisodeFilter, EpisodeKey, RunEvent, RunIndex } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { beforeAll, describe, expect, test } from 'vitest'

import { exportRun, exportTables, type ExportFormat, type ExportTable } from '../src/index.ts'

const key = (parts: Partial<EpisodeKey> = {}): EpisodeKey => ({
  split: 'train',
  step: 3,
  group: 1,
  member: 0,
  attempt: 0,
  ...parts,
})

const episode = (parts: Partial<EpisodeKey>, over: Partial<EpisodeEvent> = {}): EpisodeEvent => ({
  type: 'episode',
  key: key(parts),
  task: 'find "Zoë"\n🏇',
  fingerprint: 'f0',
  seed: 4_294_967_295,
  startedAt: Date.UTC(2026, 10, 29, 12, 0, 0, 7),
  ms: 250.5,
  end: { kind: 'completed' },
  messages: [{ role: 'user', content: 'Who is it?' }],
  tools: [{ name: 'find', parameters: { type: 'object' } }],
  calls: [{ id: 'c0', name: 'find', arguments: { zip: '01234' }, result: 'zoe_1', ms: 1.5 }],
  replies: [],
  sequences: [
    {
      ids: Int32Array.of(5, 6, -1, 300_000),
      logprobs: Float32Array.of(0, 0, 0, -0.5),
      mask: Int32Array.of(0, 1, 0, 1),
    },
    { ids: Int32Array.of(), logprobs: Float32Array.of(), mask: Int32Array.of() },
  ],
  ...over,
})

const events: readonly RunEvent[] = [
  episode({ member: 0 }),
  {
    type: 'score',
    key: key({ member: 0 }),
    scores: { answer: { value: 1, note: 'right' } },
    metrics: { messages: 2 },
    reward: { reward: 1 },
  },
  {
    type: 'training',
    key: key({ member: 0 }),
    step: 4,
    advantage: 0.5,
    data: [{ sequence: 0, length: 3, trained: 2 }],
  },
  episode(
    { member: 1 },
    { end: { kind: 'failed', phase: 'tool', error: { name: 'Error', message: 'it broke' } } },
  ),
  {
    type: 'training',
    key: key({ member: 1 }),
    step: 4,
    untrained: 'failed',
    data: [],
  },
  {
    type: 'call',
    key: key({ member: 2 }),
    task: 'open',
    fingerprint: 'f1',
    startedAt: 5,
    reply: 0,
    messages: [{ role: 'assistant', content: 'looking', reply: 0 }],
  },
  {
    type: 'group',
    key: { split: 'train', step: 3, group: 1 },
    task: 'find "Zoë"\n🏇',
    fingerprint: 'f0',
    members: 3,
    dropped: 'too few left',
  },
  episode({ split: 'eval', evaluation: 'smoke', step: 0, group: 0 }),
  {
    type: 'metrics',
    split: 'train',
    step: 3,
    values: { loss: 0.25, kl: null },
    timing: { 'step:ms': 9 },
  },
  {
    type: 'metrics',
    split: 'eval',
    evaluation: 'smoke',
    step: 0,
    values: { success: 1 },
    timing: {},
  },
]

let index: RunIndex
beforeAll(async () => {
  index = memoryRunIndex()
  const record = { name: 'one', seed: 1, config: {}, fingerprints: {}, versions: {} }
  const writer = await index.claim({ version: 1, startedAt: 1, ...record }, { expect: 'new' })
  for (const event of events) await writer.append(event)
  await writer.close()
})

async function exported(
  table: ExportTable,
  format: ExportFormat,
  more: Partial<Parameters<typeof exportRun>[0]> = {},
): Promise<{ rows: number; bytes: Buffer }> {
  const chunks: Uint8Array[] = []
  const write = async (chunk: Uint8Array) => void chunks.push(chunk)
  const rows = await exportRun({ index, run: 'one', table, format, write, ...more })
  return { rows, bytes: Buffer.concat(chunks) }
}

const linesOf = ({ bytes }: { bytes: Buffer }): readonly Record<string, unknown>[] =>
  bytes
    .toString('utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const bufferOf = ({ bytes }: { bytes: Buffer }): ArrayBuffer => new Uint8Array(bytes).buffer

test('an episode is a row of plain columns', async () => {
  const lines = linesOf(await exported('episodes', 'jsonl'))
  expect(lines).toHaveLength(4)
  expect(lines[0]).toEqual({
    id: 'train/step-0003/g1/m0/a0',
    run: 'one',
    split: 'train',
    step: 3,
    group: 1,
    member: 0,
    attempt: 0,
    task: 'find "Zoë"\n🏇',
    fingerprint: 'f0',
    end: 'completed',
    reward: 1,
    advantage: 0.5,
    trained: true,
    scores: { answer: expect.objectContaining({ value: 1 }) },
    replies: 0,
    calls: 1,
    prompt_tokens: 4,
    sampled_tokens: 0,
    started_at: '2026-11-29T12:00:00.007Z',
    ms: 250.5,
  })
  expect(lines[1]).toMatchObject({
    end: 'failed',
    failure: 'tool: it broke',
    trained: false,
    untrained: 'failed',
  })
  expect(lines[2]).toMatchObject({ end: 'unfinished', task: 'open' })
  expect(lines[3]).toMatchObject({ split: 'eval', evaluation: 'smoke' })
})

test('metrics are long: one number a row, times marked', async () => {
  expect(linesOf(await exported('metrics', 'jsonl'))).toEqual([
    { run: 'one', split: 'train', step: 3, name: 'loss', value: 0.25, timing: false },
    { run: 'one', split: 'train', step: 3, name: 'kl', timing: false },
    { run: 'one', split: 'train', step: 3, name: 'step:ms', value: 9, timing: true },
    {
      run: 'one',
      split: 'eval',
      evaluation: 'smoke',
      step: 0,
      name: 'success',
      value: 1,
      timing: false,
    },
  ])
})

test('sequences hold what training again takes; advantages only where they trained', async () => {
  const lines = linesOf(await exported('sequences', 'jsonl', { filter: { split: 'train' } }))
  expect(lines).toHaveLength(4)
  expect(lines[0]).toMatchObject({
    sequence: 0,
    ids: [5, 6, -1, 300_000],
    logprobs: [0, 0, 0, -0.5],
    mask: [0, 1, 0, 1],
    advantages: [0, 0.5, 0, 0.5],
    trained_at: 4,
  })
  expect(lines.slice(1).every((line) => !('advantages' in line))).toBe(true)
})

test('records hold what was said, also of an episode under way', async () => {
  const lines = linesOf(await exported('records', 'jsonl', { filter: { step: 3 } }))
  expect(lines[0]).toMatchObject({
    messages: [{ role: 'user', content: 'Who is it?' }],
    calls: [{ name: 'find', arguments: { zip: '01234' }, result: 'zoe_1' }],
    scores: { answer: { value: 1, note: 'right' } },
    seed: 4_294_967_295,
  })
  expect(lines[2]?.['messages']).toEqual([{ role: 'assistant', content: 'looking', reply: 0 }])
})

describe.each(exportTables.map(({ name }) => name))('the table %s', (table) => {
  test('is the same in Parquet as in JSON lines', async () => {
    const parquet = await exported(table, 'parquet')
    const rows = await parquetReadObjects({ file: bufferOf(parquet) })
    const lines = linesOf(await exported(table, 'jsonl'))
    expect(parquet.rows).toBe(lines.length)
    const withoutNulls = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row as object).filter(([, cell]) => cell !== null && cell !== undefined),
      ),
    )
    expect(JSON.parse(JSON.stringify(withoutNulls))).toEqual(lines)
  })

  test('has the documented columns, also when it is empty', async () => {
    const empty = await exported(table, 'parquet', {
      filter: { split: 'eval', evaluation: 'none' },
    })
    const { schema, num_rows } = parquetMetadata(bufferOf(empty))
    expect(num_rows).toBe(0n)
    const names = exportTables.find(({ name }) => name === table)?.columns.map(({ name }) => name)
    const nested = new Set(['root', 'list', 'element'])
    expect(schema.map(({ name }) => name).filter((name) => !nested.has(name))).toEqual(names)
  })
})

test('a large table is written in groups of rows, each handed on before the next is made', async () => {
  const { rowsAtOnce } = exportTables.find(({ name }) => name === 'records')!
  let made = 0
  const many: RunIndex = {
    ...index,
    async *records() {
      const record = await index.episode('one', key())
      for (made = 1; made <= 2 * rowsAtOnce; made += 1) yield record
    },
  }
  const madeAtWrites: number[] = []
  const write = async () => void madeAtWrites.push(made)
  await exportRun({ index: many, run: 'one', table: 'records', format: 'parquet', write })
  expect(madeAtWrites.slice(0, 2)).toEqual([rowsAtOnce, 2 * rowsAtOnce])
})

test('an export stops at its signal', async () => {
  const signal = AbortSignal.abort(new Error('enough'))
  await expect(exported('episodes', 'jsonl', { signal })).rejects.toThrow('enough')
})

test('a table or run that does not exist is refused by name', async () => {
  await expect(exported('episode' as ExportTable, 'jsonl')).rejects.toThrow('table')
  await expect(exported('episodes', 'jsonl', { run: 'two' })).rejects.toThrow('unknown run "two"')
})

test('rows of several runs follow one another', async () => {
  const record = { seed: 1, config: {}, fingerprints: {}, versions: {} }
  const several = memoryRunIndex()
  for (const name of ['a', 'b', 'c']) {
    const writer = await several.claim(
      { version: 1, startedAt: 1, name, ...record },
      { expect: 'new' },
    )
    await writer.append(episode({ member: 0 }))
    await writer.append(episode({ member: 1 }))
  }
  const { rows, bytes } = await exported('episodes', 'jsonl', { index: several, run: ['c', 'a'] })
  expect(rows).toBe(4)
  expect(linesOf({ bytes }).map(({ run, member }) => [run, member])).toEqual([
    ['c', 0],
    ['c', 1],
    ['a', 0],
    ['a', 1],
  ])
  await expect(exported('episodes', 'jsonl', { run: [] })).rejects.toThrow('run')
})

test('groups are chosen by what a group has', async () => {
  const groups = async (filter: EpisodeFilter) =>
    (await exported('groups', 'jsonl', { filter })).rows
  expect(await groups({})).toBe(2)
  expect(await groups({ task: 'open' })).toBe(0)
  expect(await groups({ group: 1 })).toBe(1)
  expect(await groups({ evaluation: 'smoke', end: 'failed' })).toBe(1)
})
