import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The checkout that a program runs in, for the record; undefined outside one or without git. */
export async function gitState(
  folder: string,
): Promise<{ readonly commit: string; readonly dirty: boolean } | undefined> {
  try {
    const [commit, changes] = await Promise.all([
      run('git', ['rev-parse', 'HEAD'], { cwd: folder }),
      run('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: folder }),
    ])
    return { commit: commit.stdout.trim(), dirty: changes.stdout !== '' }
  } catch {
    return undefined
  }
}
