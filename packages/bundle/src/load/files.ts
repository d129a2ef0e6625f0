import { createHash } from 'node:crypto'
import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { isAbsolute, join, posix, relative, sep } from 'node:path'

import { ConfigError } from '@tiltyard/core'

import { MANIFEST_FILE } from './manifest.ts'

/** Reads the files of one folder and of nothing else, and remembers what it read. */
export interface FolderReader {
  readonly folder: string
  /** @throws ConfigError when the path leaves the folder, goes through a symbolic link, or names no file. */
  bytes(path: string): Promise<Buffer>
  text(path: string): Promise<string>
  /** SHA-256 of each file that was read, by path. */
  readonly read: ReadonlyMap<string, string>
}

export function folderReader(folder: string): FolderReader {
  const read = new Map<string, string>()
  const bytes = async (path: string) => {
    const plain = await checkedPath(folder, path)
    const content = await readFile(join(folder, plain))
    read.set(plain, createHash('sha256').update(content).digest('hex'))
    return content
  }
  return {
    folder,
    bytes,
    text: async (path) => (await bytes(path)).toString('utf8'),
    read,
  }
}

/** The path in its plain form, with `/`. @throws ConfigError as `FolderReader.bytes` does. */
async function checkedPath(folder: string, path: string): Promise<string> {
  const plain = posix.normalize(path)
  if (isAbsolute(path) || path.includes('\\') || plain === '..' || plain.startsWith('../'))
    refuse(path, 'leaves the folder')
  let walked = folder
  for (const part of plain.split('/')) {
    walked = join(walked, part)
    const found = await lstat(walked).catch(() => undefined)
    if (found === undefined) refuse(path, 'does not exist')
    if (found.isSymbolicLink()) refuse(path, 'goes through a symbolic link')
    if (walked === join(folder, plain) && !found.isFile()) refuse(path, 'is no file')
  }
  return plain
}

function refuse(path: string, why: string): never {
  throw new ConfigError('file of a bundle', [{ at: '', message: `"${path}" ${why}` }])
}

const unread = /^(?:\.|node_modules$|test$|recipes$|README|LICENSE|CHANGELOG)/

/**
 * Files of a folder that decide how its tasks play, by path with `/`, sorted. Left out: hidden ones, `node_modules`,
 * `test`, `recipes`, README, LICENSE and CHANGELOG, and folders that are bundles themselves. Symbolic links are listed apart.
 */
export async function folderFiles(
  folder: string,
): Promise<{ readonly files: readonly string[]; readonly links: readonly string[] }> {
  const root = await realpath(folder)
  const files: string[] = []
  const links: string[] = []
  const walk = async (under: string) => {
    const entries = await readdir(under, { withFileTypes: true })
    if (under !== root && entries.some(({ name }) => name === MANIFEST_FILE)) return
    for (const entry of entries) {
      if (unread.test(entry.name)) continue
      const path = join(under, entry.name)
      if (entry.isSymbolicLink()) links.push(plainPath(root, path))
      else if (entry.isDirectory()) await walk(path)
      else if (entry.isFile()) files.push(plainPath(root, path))
    }
  }
  await walk(root)
  return { files: files.toSorted(), links: links.toSorted() }
}

function plainPath(root: string, path: string): string {
  return relative(root, path).split(sep).join('/')
}
