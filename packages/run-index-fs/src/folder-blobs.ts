import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import process from 'node:process'

import { StateError } from '@tiltyard/core'
import type { BlobInfo, BlobStore, ByteRange } from '@tiltyard/run-log'

import type { Files } from './files.ts'
import { errorCode, isAbsent, storeError } from './store-errors.ts'

/** As a recursive mkdir, with the true reason when it fails: Node calls a folder absent that is in a read-only one. */
async function mkdirAll(files: Files, path: string): Promise<string | undefined> {
  try {
    return await files.mkdir(path, { recursive: true })
  } catch (error) {
    const parent = dirname(path)
    if (errorCode(error) !== 'ENOENT' || parent === path) throw error
    const first = await mkdirAll(files, parent)
    await files.mkdir(path).catch((reason: unknown) => {
      // Another writer was faster.
      if (errorCode(reason) !== 'EEXIST') throw reason
    })
    return first ?? path
  }
}

/** Blobs as files of a folder. Symbolic links below it are not followed. */
export function folderBlobs(folder: string, files: Files): BlobStore {
  const root = resolve(folder)

  const pathOf = (key: string) => {
    if (key.split('/').some((part) => part === '' || part === '.' || part === '..'))
      throw new StateError(`"${key}" is no key`)
    return join(root, key)
  }
  /** Whether a folder lies where its path says, not behind a link. */
  const isOwn = async (path: string) =>
    relative(await files.realpath(root), await files.realpath(path)) === relative(root, path)

  /** Makes the folder and, where it is new, its place in its parents durable. */
  const makeFolder = async (path: string) => {
    const first = await mkdirAll(files, path)
    if (!(await isOwn(path)))
      throw new Error('a symbolic link leads out of the folder; links are not followed')
    if (first === undefined) return
    for (let made = path; made.length >= first.length; made = dirname(made))
      await syncFolder(files, dirname(made))
  }
  const writeTemporary = async (path: string, content: Uint8Array, durable: boolean) => {
    const temporary = join(dirname(path), `.tmp-${randomUUID()}`)
    const handle = await files.open(temporary, 'wx')
    try {
      await writeAll(handle, content, 0)
      if (durable) await handle.sync()
    } catch (error) {
      await files.unlink(temporary).catch(() => {})
      throw error
    } finally {
      await handle.close()
    }
    return temporary
  }
  const read = async (key: string, range?: ByteRange): Promise<Uint8Array | undefined> => {
    const path = pathOf(key)
    let handle: FileHandle | undefined
    try {
      handle = await files.open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
      const { size } = await handle.stat()
      const { start, end } = within(size, range)
      const content = Buffer.alloc(Math.max(0, end - start))
      return content.subarray(0, await readAll(handle, content, start))
    } catch (error) {
      if (isAbsent(error)) return undefined
      throw storeError('read', path, error)
    } finally {
      await handle?.close()
    }
  }

  return {
    name: `folder ${folder}`,
    async create(key, content, signal) {
      signal?.throwIfAborted()
      const path = pathOf(key)
      try {
        await makeFolder(dirname(path))
        const temporary = await writeTemporary(path, content, true)
        try {
          // Fails for all but one racer, and readers see the whole or nothing.
          await files.link(temporary, path)
        } finally {
          await files.unlink(temporary)
        }
        await syncFolder(files, dirname(path))
        return true
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw storeError('write', path, error)
      }
      const existing = await read(key)
      return existing !== undefined && Buffer.compare(existing, content) === 0
    },
    async replace(key, content) {
      const path = pathOf(key)
      try {
        await makeFolder(dirname(path))
        await files.rename(await writeTemporary(path, content, false), path)
      } catch (error) {
        throw storeError('write', path, error)
      }
    },
    read,
    async list(name) {
      const path = name === '' ? root : pathOf(name)
      try {
        if (!(await isOwn(path))) return { blobs: [], folders: [] }
        const entries = await files.readdir(path, { withFileTypes: true })
        const blobs = await Promise.all(
          entries.filter((entry) => entry.isFile()).map((entry) => infoOf(files, path, entry.name)),
        )
        return {
          blobs: blobs.filter((info) => info !== undefined),
          folders: entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name),
        }
      } catch (error) {
        if (isAbsent(error)) return { blobs: [], folders: [] }
        throw storeError('list', path, error)
      }
    },
    async remove(key) {
      const path = pathOf(key)
      try {
        await files.unlink(path)
      } catch (error) {
        if (!isAbsent(error)) throw storeError('remove', path, error)
      }
      await removeEmptyFolders(files, root, dirname(path))
    },
    growing: {
      async length(key) {
        try {
          return (await files.lstat(pathOf(key))).size
        } catch (error) {
          if (isAbsent(error)) return 0
          throw storeError('read', pathOf(key), error)
        }
      },
      async write(key, offset, content) {
        const path = pathOf(key)
        try {
          if (offset === 0) await makeFolder(dirname(path))
          const flags = constants.O_WRONLY | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)
          const handle = await files.open(path, flags)
          try {
            await writeAll(handle, content, offset)
            await handle.datasync()
          } finally {
            await handle.close()
          }
          if (offset === 0) await syncFolder(files, dirname(path))
        } catch (error) {
          throw storeError('write', path, error)
        }
      },
    },
  }
}

function within(size: number, range: ByteRange | undefined): { start: number; end: number } {
  if (range === undefined) return { start: 0, end: size }
  if ('last' in range) return { start: Math.max(0, size - range.last), end: size }
  return { start: range.start, end: Math.min(size, range.end) }
}

/** A write may be short, for instance when the disk is filling up. */
async function writeAll(handle: FileHandle, content: Uint8Array, position: number): Promise<void> {
  let done = 0
  while (done < content.length) {
    const { bytesWritten } = await handle.write(
      content,
      done,
      content.length - done,
      position + done,
    )
    done += bytesWritten
  }
}

async function readAll(handle: FileHandle, content: Uint8Array, position: number): Promise<number> {
  let done = 0
  while (done < content.length) {
    const { bytesRead } = await handle.read(content, done, content.length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return done
}

/** Makes new names in a folder durable. Windows opens no folders. */
async function syncFolder(files: Files, path: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await files.open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function infoOf(files: Files, folder: string, name: string): Promise<BlobInfo | undefined> {
  try {
    const { size, mtimeMs } = await files.lstat(join(folder, name))
    return { name, bytes: size, age: Math.max(0, Date.now() - mtimeMs) }
  } catch (error) {
    // Removed since it was listed.
    if (isAbsent(error)) return undefined
    throw error
  }
}

async function removeEmptyFolders(files: Files, root: string, path: string): Promise<void> {
  for (let folder = path; folder !== root; folder = dirname(folder)) {
    try {
      await files.rmdir(folder)
    } catch {
      return
    }
  }
}
