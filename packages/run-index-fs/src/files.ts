import * as fs from 'node:fs/promises'

/** What we use of `node:fs/promises`; tests put a failing disk in its place. */
export type Files = Pick<
  typeof fs,
  'link' | 'lstat' | 'mkdir' | 'open' | 'readdir' | 'realpath' | 'rename' | 'rmdir' | 'unlink'
>

export const nodeFiles: Files = fs
