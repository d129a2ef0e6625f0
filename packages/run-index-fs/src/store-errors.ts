import { StoreError } from '@tiltyard/core'

const explanations: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space, then go on',
  EDQUOT: 'the disk quota is used up; free some space, then go on',
  EROFS: 'the file system is read-only; choose another folder',
  EACCES: 'permission denied; make the folder writable for this user, or choose another one',
  EPERM:
    'the system does not permit it; the folder may be protected, or lack hard links as FAT does',
  ENOTSUP: 'the file system lacks hard links, which create-only writes need; choose another folder',
  EMFILE: 'too many files are open in this process',
  ENOTDIR: 'a part of the path is a file where a folder is needed',
}

/** A system error as one that says what was being done, where, and what to do. */
export function storeError(doing: string, path: string, error: unknown): StoreError {
  const code = errorCode(error)
  const why = explanations[code ?? ''] ?? (error instanceof Error ? error.message : String(error))
  return new StoreError(`can't ${doing} ${path}: ${why}${code === undefined ? '' : ` (${code})`}`, {
    cause: error,
    details: { doing, path, ...(code === undefined ? {} : { errno: code }) },
  })
}

export function errorCode(error: unknown): string | undefined {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** True for the errors that mean "there is nothing of that name". */
export function isAbsent(error: unknown): boolean {
  const code = errorCode(error)
  // ELOOP: a symbolic link in its place, which is not followed.
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP'
}
