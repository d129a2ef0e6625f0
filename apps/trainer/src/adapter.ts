import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { ConfigError } from '@tiltyard/core'

/**
 * Imports an adapter that is no dependency of this program: the one of the project that it was started in, else one that was
 * installed beside it.
 * @param use what it is for, as the message names it.
 * @throws ConfigError naming the package to install.
 */
export async function importAdapter<Module>(name: string, use: string): Promise<Module> {
  const inProject = resolveFrom(process.cwd(), name)
  try {
    return (await import(inProject ?? name)) as Module
  } catch (error) {
    if (!isMissing(error, name)) throw error
    throw new ConfigError('adapter', [
      {
        at: name,
        message: `${use} need it, and it isn't installed here; try: npm install ${name}`,
      },
    ])
  }
}

function resolveFrom(folder: string, name: string): string | undefined {
  try {
    return pathToFileURL(createRequire(join(folder, 'package.json')).resolve(name)).href
  } catch {
    return undefined
  }
}

/** Whether the package itself is missing, not something that it imports. */
function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND') &&
    error.message.includes(`'${name}'`)
  )
}
