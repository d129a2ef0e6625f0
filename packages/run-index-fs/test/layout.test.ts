import { execFile } from 'node:child_process'
import { mkdir, readFile, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'

import { parseRecord } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { fsRunIndex } from '../src/index.ts'
import { all, freshFolder, runRecord, stepEvents } from './support.ts'

async function smallRun(folder: string): Promise<void> {
  const writer = await fsRunIndex({ folder }).claim(runRecord(), { expect: 'new' })
  for (const step of [0, 1]) for (const event of stepEvents(step)) await writer.append(event)
  await writer.close()
}

const filesOf = async (folder: string) =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .toSorted()

test('a run is a folder that a person can read', async () => {
  const folder = await freshFolder()
  await smallRun(folder)
  expect(await filesOf(join(folder, 'one'))).toEqual([
    'alive/0001',
    'claims/0001.json',
    'log/0001.jsonl',
    'metrics.jsonl',
    'outline/0001.jsonl',
    'run.json',
    'timing.jsonl',
    'train/step-0000/0001.episodes.jsonl',
    'train/step-0000/0001.episodes.jsonl.gz',
    'train/step-0001/0001.episodes.jsonl',
    'train/step-0001/0001.episodes.jsonl.gz',
  ])
  expect(await readFile(join(folder, 'one/metrics.jsonl'), 'utf8')).toBe(
    '{"split":"train","step":0,"loss":0.3333333333333333}\n' +
      '{"split":"train","step":1,"loss":0.3333333333333333}\n',
  )
  expect(await readFile(join(folder, 'one/timing.jsonl'), 'utf8')).toContain('"step:ms":5')
  expect(JSON.parse(await readFile(join(folder, 'one/run.json'), 'utf8'))).toEqual(runRecord())
})

test('records are JSON lines for any program that unpacks gzip', async () => {
  const folder = await freshFolder()
  await smallRun(folder)
  const packed = join(folder, 'one/train/step-0001/0001.episodes.jsonl.gz')
  const lines = gunzipSync(await readFile(packed))
    .toString('utf8')
    .trim()
    .split('\n')
  expect(lines.map(parseRecord)).toEqual([stepEvents(1)[0]])
})

test('equal runs have equal files, claims and signs of life apart', async () => {
  const [a, b] = [await freshFolder(), await freshFolder()]
  await smallRun(a)
  await smallRun(b)
  const names = (await filesOf(a)).filter((name) => !/\/(?:claims|alive)\//.test(name))
  for (const name of names)
    expect(await readFile(join(b, name))).toEqual(await readFile(join(a, name)))
})

test('no temporary file is left, and those of a crash are collected once they are old', async () => {
  const folder = await freshFolder()
  await smallRun(folder)
  const { upkeep } = fsRunIndex({ folder })
  expect(await upkeep!.collect('one')).toEqual({ blobs: 0, bytes: 0 })
  const young = join(folder, 'one/claims/.tmp-young')
  const old = join(folder, 'one/train/step-0000/.tmp-old')
  for (const file of [young, old]) await writeFile(file, 'half')
  const before = new Date(Date.now() - 2 * 3_600_000)
  await utimes(old, before, before)
  expect(await upkeep!.collect('one')).toEqual({ blobs: 1, bytes: 4 })
  const left = (await filesOf(folder)).filter((name) => name.includes('.tmp-'))
  expect(left).toEqual(['one/claims/.tmp-young'])
})

test('removing the last run leaves the folder, and what else is in it, alone', async () => {
  const folder = await freshFolder()
  await smallRun(folder)
  await mkdir(join(folder, 'mine'))
  await fsRunIndex({ folder }).upkeep!.remove('one')
  expect(await readdir(folder)).toEqual(['mine'])
})

test('nothing is read or made before the first call, and a missing folder holds no runs', async () => {
  const parent = await freshFolder()
  const index = fsRunIndex({ folder: join(parent, 'runs') })
  expect(await all(index.runs())).toEqual([])
  await expect(index.run('one')).rejects.toThrow('unknown run "one"')
  expect(await readdir(parent)).toEqual([])
})

test('options that aren’t right are refused by name', () => {
  // @ts-expect-error: a key that doesn't exist
  expect(() => fsRunIndex({ folder: 'runs', batchMS: 5 })).toThrow('did you mean "batchMs"?')
  expect(() => fsRunIndex({ folder: '' })).toThrow('folder')
})

function runProgram(text: string) {
  return promisify(execFile)(
    process.execPath,
    ['--conditions=@tiltyard/source', '--import=tsx', '--input-type=module', '--eval', text],
    // For hangs only.
    { timeout: 900_000 },
  )
}

test('an idle writer keeps no process alive, one with something to write does', async () => {
  const folder = await freshFolder()
  const program = (append: string) => `
    import { fsRunIndex } from '${new URL('../src/index.ts', import.meta.url).href}'
    const writer = await fsRunIndex({ folder: ${JSON.stringify(folder)} })
      .claim(${JSON.stringify(runRecord())}, { expect: '${append === '' ? 'new' : 'resume'}' })
    ${append}`
  await runProgram(program(''))
  await runProgram(program(`await writer.append(${JSON.stringify(stepEvents(0)[2])})`))
  expect((await fsRunIndex({ folder }).run('one')).steps).toHaveLength(1)
})
