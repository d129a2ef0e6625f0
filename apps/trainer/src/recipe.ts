import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

import { ConfigError, nearest, TiltyardError } from '@tiltyard/core'
import { tsImport } from 'tsx/esm/api'

/** Imports a module by its URL, TypeScript or not. Rejects as it threw. */
export async function importByUrl(url: string): Promise<unknown> {
  return tsImport(url, import.meta.url)
}

/**
 * Imports a recipe or another module that a person named.
 * @throws ConfigError naming the file, and the package to install when an adapter is missing.
 */
export async function importModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  const file = resolve(path)
  if (!existsSync(file)) throw new ConfigError('recipe', [{ at: path, message: 'no such file' }])
  try {
    return (await importByUrl(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const missing = missingPackage(error)
    if (missing !== undefined) {
      throw new ConfigError('recipe', [
        {
          at: path,
          message: `it imports "${missing}", which isn't installed here; try: npm install ${missing}`,
        },
      ])
    }
    if (TiltyardError.is(error)) throw error
    const message = error instanceof Error ? error.message : String(error)
    const why = NOT_A_MODULE.test(message)
      ? 'it uses await at its top level, which only ES modules have; name it with the ending .mts, or put "type": "module" into the package.json beside it'
      : `it threw while it was loaded: ${message}`
    throw new ConfigError('recipe', [{ at: path, message: why }], { cause: error })
  }
}

/**
 * The module's export of a kind, its default export first; a recipe's other exports don't count.
 * @throws ConfigError saying what the module exports instead.
 */
export function pickExport<T>(
  path: string,
  module: Readonly<Record<string, unknown>>,
  wanted: {
    readonly what: string
    readonly is: (value: unknown) => value is T
    readonly name?: string | undefined
  },
): T {
  const { what, is, name } = wanted
  if (name !== undefined) {
    const value = module[name]
    if (is(value)) return value
    const near = nearest(name, Object.keys(module))
    const hint = near === undefined || near === name ? '' : `; did you mean "${near}"?`
    throw new ConfigError('recipe', [
      { at: path, message: `its export "${name}" is no ${what}${hint}` },
    ])
  }
  const values = [module['default'], ...Object.values(module)].filter((value) => is(value))
  const distinct = [...new Set(values)]
  if (distinct.length === 1 || is(module['default'])) return distinct[0] as T
  const exported = Object.keys(module).join(', ') || 'nothing'
  const found = distinct.length === 0 ? 'none' : `${distinct.length}`
  throw new ConfigError('recipe', [
    {
      at: path,
      message: `it should export one ${what}; it exports ${found} (exports: ${exported})`,
    },
  ])
}

/** What the compiler says of top-level await in a file that its package takes for CommonJS. */
const NOT_A_MODULE = /Top-level await is currently not supported with the "cjs" output format/

/** The package that a failed import asked for, if that is what went wrong. */
function missingPackage(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  if (error.code !== 'ERR_MODULE_NOT_FOUND' && error.code !== 'MODULE_NOT_FOUND') return undefined
  return /Cannot find (?:package|module) '((?:@[^/']+\/)?[^./'][^/']*)/.exec(error.message)?.[1]
}

const ownPackages = ['core', 'train'] as const

/** Versions for the record: of Node, and of the packages that decide what a run does. */
export function packageVersions(): Record<string, string> {
  const require = createRequire(import.meta.url)
  const versions: Record<string, string> = { node: process.versions.node }
  for (const name of ownPackages) {
    const { version } = require(`@tiltyard/${name}/package.json`) as { readonly version: string }
    versions[`@tiltyard/${name}`] = version
  }
  return versions
}
