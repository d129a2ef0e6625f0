import { rm, symlink, writeFile, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { TiltyardError } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { nodeFiles, type Files } from '../src/files.ts'
import { fsRunIndexOn } from '../src/fs-run-index.ts'
import { fsRunIndex } from '../src/index.ts'
import { all, episode, freshFolder, runRecord, stepEvents } from './support.ts'

/** A disk on which, from the write with this number on, every write fails half-way. */
function fillingDisk(writes: number): Files & { free: () => void } {
  let left = writes
  let isFull = true
  const fail = refusal('ENOSPC')
  return {
    ...nodeFiles,
    free() {
      isFull = false
    },
    async open(...args: Parameters<Files['open']>) {
      const handle = await nodeFiles.open(...args)
      const write = handle.write.bind(handle) as (
        content: Uint8Array,
        offset: number,
        length: number,
        position: number,
      ) => ReturnType<typeof handle.write<Uint8Array>>
      const failing = async (
        content: Uint8Array,
        offset: number,
        length: number,
        position: number,
      ) => {
        left -= 1
        if (left > 0 || !isFull) return write(content, offset, length, position)
        if (left === 0 && length > 1) return write(content, offset, Math.ceil(length / 2), position)
        return fail()
      }
      return Object.assign(handle, { write: failing as unknown as typeof handle.write })
    },
  }
}

function refusal(code: string): () => Promise<never> {
  return () => Promise.reject(Object.assign(new Error(`${code}: from the test`), { code }))
}

test('a full disk is told, what was readable stays, and the writer goes on once there is space', async () => {
  const folder = await freshFolder()
  const expected = [episode(0), episode(1), episode(2)]
  for (let writes = 3; writes < 12; writes += 1) {
    const disk = fillingDisk(writes)
    const record = runRecord(`after-${writes}`)
    const writer = await fsRunIndexOn(disk, { folder }).claim(record, { expect: 'new' })
    const appended = async () => {
      for (const event of expected) {
        await writer.append(event)
        await writer.flush()
      }
    }
    const error = await appended().then(
      () => new Error('the full disk was not told'),
      (reason: Error) => reason,
    )
    expect(error).toMatchObject({ code: 'STORE' })
    expect(error.message).toMatch(
      /not durable yet: can't write .*: the disk is full; free some space/,
    )

    const reader = fsRunIndex({ folder })
    const before = await all(reader.episodes(record.name))
    expect(before.length).toBeLessThanOrEqual(2)
    for (const { key } of before)
      expect((await reader.episode(record.name, key)).episode).toEqual(expected[key.member])

    disk.free()
    await writer.flush()
    await appended()
    await writer.close()
    expect(await all(reader.episodes(record.name))).toHaveLength(3)
    expect(await all(reader.upkeep!.check(record.name))).toEqual([])
  }
})

test('a run that can’t begin for want of space leaves its name free', async () => {
  const folder = await freshFolder()
  for (let writes = 1; writes < 3; writes += 1) {
    const full = fsRunIndexOn(fillingDisk(writes), { folder })
    await expect(full.claim(runRecord(), { expect: 'new' })).rejects.toThrow('the disk is full')
    expect(await all(fsRunIndex({ folder }).runs())).toEqual([])
  }
  await fsRunIndex({ folder }).claim(runRecord(), { expect: 'new' })
})

describe('a folder that can’t be written', () => {
  test.each([
    ['EROFS', 'the file system is read-only; choose another folder'],
    ['EACCES', 'permission denied; make the folder writable'],
    ['EPERM', 'the system does not permit it'],
  ])('is told in words: %s', async (code, words) => {
    const files = { ...nodeFiles, mkdir: refusal(code) }
    const index = fsRunIndexOn(files, { folder: await freshFolder() })
    const claim = index.claim(runRecord(), { expect: 'new' })
    await expect(claim).rejects.toThrow(words)
    await expect(claim).rejects.toMatchObject({ code: 'STORE', details: { errno: code } })
  })

  test('is told as it is, where Node says of new folders in it that they are absent', async () => {
    const folder = await freshFolder()
    const made = (async (path: string, options?: { readonly recursive?: boolean }) => {
      if (path === folder) return nodeFiles.mkdir(path, options)
      return refusal(options?.recursive === true ? 'ENOENT' : 'EROFS')()
    }) as Files['mkdir']
    const index = fsRunIndexOn({ ...nodeFiles, mkdir: made }, { folder })
    await expect(index.claim(runRecord(), { expect: 'new' })).rejects.toThrow(
      'the file system is read-only; choose another folder',
    )
  })

  test('is told when a file is in its place', async () => {
    const folder = join(await freshFolder(), 'runs')
    await writeFile(folder, '')
    await expect(fsRunIndex({ folder }).claim(runRecord(), { expect: 'new' })).rejects.toThrow(
      `can't write ${folder}`,
    )
  })

  test('is read all the same', async () => {
    const folder = await freshFolder()
    const writer = await fsRunIndex({ folder }).claim(runRecord(), { expect: 'new' })
    for (const event of stepEvents(0)) await writer.append(event)
    await writer.close()
    const refuse = refusal('EROFS')
    const writes = { mkdir: refuse, link: refuse, rename: refuse, unlink: refuse, rmdir: refuse }
    const reader = fsRunIndexOn({ ...nodeFiles, ...writes }, { folder })
    expect(await all(reader.episodes('one'))).toHaveLength(1)
    expect((await reader.run('one')).steps).toHaveLength(1)
  })
})

test('links below the folder are followed neither in reading nor in writing', async () => {
  const [folder, outside] = [await freshFolder(), await freshFolder()]
  const writer = await fsRunIndex({ folder: outside }).claim(runRecord(), { expect: 'new' })
  for (const event of stepEvents(0)) await writer.append(event)
  await writer.close()
  await mkdir(join(folder, 'half'))
  await symlink(join(outside, 'one'), join(folder, 'one'))
  await symlink(join(outside, 'one', 'claims'), join(folder, 'half', 'claims'))
  const index = fsRunIndex({ folder })
  expect(await all(index.runs())).toEqual([])
  await expect(index.run('one')).rejects.toSatisfy((error) => TiltyardError.is(error, 'NOT_FOUND'))
  await expect(index.run('half')).rejects.toSatisfy((error) => TiltyardError.is(error, 'NOT_FOUND'))
  const before = await readdir(outside, { recursive: true })
  await expect(index.claim(runRecord(), { expect: 'new' })).rejects.toThrow('symbolic link')
  expect(await readdir(outside, { recursive: true })).toEqual(before)
})

test('what else lies in the folder is neither a run nor in the way', async () => {
  const folder = await freshFolder()
  await writeFile(join(folder, 'notes.txt'), 'mine')
  await mkdir(join(folder, '.git'))
  await mkdir(join(folder, 'checkpoints'))
  await writeFile(join(folder, 'checkpoints', 'weights'), '')
  const index = fsRunIndex({ folder })
  await index.claim(runRecord(), { expect: 'new' })
  expect((await all(index.runs())).map(({ name }) => name)).toEqual(['one'])
})

test('a directory where a file should be damages its run alone', async () => {
  const folder = await freshFolder()
  for (const name of ['one', 'two']) {
    const writer = await fsRunIndex({ folder }).claim(runRecord(name), { expect: 'new' })
    for (const event of stepEvents(0)) await writer.append(event)
    await writer.close()
  }
  for (const name of [
    'claims/0001.json',
    'log/0001.jsonl',
    'train/step-0000/0001.episodes.jsonl',
  ]) {
    await rm(join(folder, 'one', name))
    await mkdir(join(folder, 'one', name))
    const reader = fsRunIndex({ folder })
    const summaries = await all(reader.runs())
    expect(summaries.at(-1)).toEqual({
      name: 'two',
      status: 'interrupted',
      startedAt: 1_764_000_000_000,
      step: 0,
    })
    expect(await all(reader.episodes('two'))).toHaveLength(1)
  }
})
