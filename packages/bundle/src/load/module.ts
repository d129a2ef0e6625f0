import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import type { BundleModule } from '../author/bundle-module.ts'
import type { Mistakes } from './mistakes.ts'

/** Imports a module by its file URL. */
export type ImportModule = (url: string) => Promise<unknown>

export const plainImport: ImportModule = (url) => import(url)

/** The module's `bundle`; undefined, with the mistake noted, when it can't be had. */
export async function loadModule(
  folder: string,
  path: string,
  importModule: ImportModule,
  mistakes: Mistakes,
): Promise<BundleModule | undefined> {
  const file = join(folder, path)
  let loaded: unknown
  try {
    loaded = await importModule(pathToFileURL(file).href)
  } catch (error) {
    mistakes.add(placeIn(folder, error) ?? path, whyNotImported(path, error))
    return undefined
  }
  const bundle = (loaded as { readonly bundle?: unknown }).bundle
  if (typeof bundle !== 'object' || bundle === null) {
    mistakes.add(path, 'it exports no "bundle"; write `export const bundle = defineBundle({ … })`')
    return undefined
  }
  return bundle
}

function whyNotImported(path: string, error: unknown): string {
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  const code = (error as { readonly code?: unknown } | undefined)?.code
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
    return `this Node doesn't import "${path}"; run it through tsx (node --import tsx …), or name compiled JavaScript in the manifest`
  const missing = missingPackage(code, message)
  if (missing !== undefined)
    return `it imports "${missing}", which can't be found from there; install it in the bundle's folder or in one above: npm install ${missing}`
  return `importing it failed: ${message}`
}

/** The package that an import names and no folder above has; a file is no package. */
function missingPackage(code: unknown, message: string): string | undefined {
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined
  return /Cannot find (?:package|module) '((?:@[^/']+\/)?[^./'][^/']*)/.exec(message)?.[1]
}

/** The first place inside the folder in an error's stack: `bundle.ts:12`. */
export function placeIn(folder: string, error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  for (const line of stack.split('\n')) {
    const match = /((?:file:\/\/)?\/[^\s()]+?|[A-Za-z]:\\[^\s()]+?):(\d+)(?::\d+)?\)?$/.exec(line)
    if (match === null) continue
    const file = match[1]!.startsWith('file:') ? fileURLToPath(match[1]!) : match[1]!
    const plain = file.replace(/\?.*$/, '')
    if (plain.startsWith(`${folder}/`) || plain.startsWith(`${folder}\\`))
      return `${plain.slice(folder.length + 1).replaceAll('\\', '/')}:${match[2]!}`
  }
  return undefined
}

/** The line where a name first stands in a module's text, for mistakes about what the module defines. */
export function lineOfName(path: string, text: string, name: string): string {
  const line = text.split('\n').findIndex((candidate) => candidate.includes(name))
  return line === -1 ? path : `${path}:${line + 1}`
}
