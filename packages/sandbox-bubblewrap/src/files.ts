import { posix } from 'node:path'

import {
  ConfigError,
  NotFoundError,
  StoreError,
  type ExecOptions,
  type Sandbox,
} from '@tiltyard/core'

import type { ContainedResult } from './run.ts'

type Run = (
  script: string,
  how: ExecOptions & { readonly input?: Uint8Array; readonly outputBytes?: number },
) => Promise<ContainedResult>

const MISSING = 66

/**
 * Files in and out are copied by programs inside the sandbox: a link that a command left behind leads nowhere else than where
 * it leads for that command.
 */
export function sandboxFiles(run: Run): Pick<Sandbox, 'write' | 'read'> {
  return {
    async write(path, data) {
      const input = typeof data === 'string' ? new TextEncoder().encode(data) : data
      const target = quote(inside(path))
      const result = await run(`mkdir -p -- "$(dirname -- ${target})" && cat > ${target}`, {
        input,
      })
      if (result.exitCode !== 0)
        throw new StoreError(`could not write ${path} in the sandbox: ${said(result)}`)
    },
    async read(path, maxBytes) {
      const source = quote(inside(path))
      const script = `[ -f ${source} ] || exit ${MISSING}; head -c ${Math.floor(maxBytes)} -- ${source}`
      const result = await run(script, { outputBytes: maxBytes })
      if (result.exitCode === MISSING)
        throw new NotFoundError(`there is no file ${path} in the sandbox`)
      if (result.exitCode !== 0)
        throw new StoreError(`could not read ${path} in the sandbox: ${said(result)}`)
      return result.stdout
    },
  }
}

function inside(path: string): string {
  const normal = posix.normalize(path)
  if (
    path === '' ||
    path.includes('\0') ||
    posix.isAbsolute(path) ||
    normal === '..' ||
    normal.startsWith('../')
  ) {
    throw new ConfigError('sandbox file', [
      { at: path, message: 'expected a path relative to the working directory, inside it' },
    ])
  }
  return `./${normal}`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function said({ stderr, stopped }: ContainedResult): string {
  return stopped === undefined
    ? new TextDecoder().decode(stderr).trim()
    : `stopped by the limit on ${stopped}`
}
