import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'

import {
  ConfigError,
  type JsonObject,
  type JsonValue,
  TiltyardError,
  unknownName,
} from '@tiltyard/core'

import type { LoadContext } from '../author/bundle-module.ts'
import { type FolderReader, folderFiles, folderReader } from './files.ts'
import { MANIFEST_FILE, type Manifest, manifestSchema } from './manifest.ts'
import { collectMistakes, type JsonSource, type Mistakes } from './mistakes.ts'
import type { ImportModule } from './module.ts'

export interface LoadOptions {
  /**
   * How the bundle's module is imported, by its file URL. Default: `import()`. On Node 20 an app that takes TypeScript modules
   * passes an import that reads them.
   */
  readonly importModule?: ImportModule
  /** Folder of the data that the manifest asks for. Default: what `TILTYARD_DATA`, or else the manifest's own variable, says in `env`. */
  readonly data?: string
  /** In the place of the manifest's settings. */
  readonly settings?: JsonObject
  /** Variables that the manifest may name: for secrets, and for the folder of data. An app passes `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Tells every bundle that asks for data where they lie; the command line sets it for a recipe's bundles. */
export const DATA_VARIABLE = 'TILTYARD_DATA'

/** A bundle on its way in: what its parts are read from, and where their mistakes go. */
export interface Loading {
  readonly manifest: Manifest
  /** The manifest's text, for lines. */
  readonly source: JsonSource
  readonly files: FolderReader
  /** The folder of outside data; undefined when the manifest asks for none, or none was given. */
  readonly data: FolderReader | undefined
  readonly context: LoadContext
  readonly options: LoadOptions
  readonly mistakes: Mistakes
}

/**
 * Opens a bundle's folder and reads its manifest. Keys that are wrong are noted and left out, so that the rest can be checked.
 * @throws ConfigError when there is no manifest to go on with.
 */
export async function openFolder(folder: string, options: LoadOptions): Promise<Loading> {
  const root = await realpath(folder).catch(() => undefined)
  if (root === undefined) throw noBundle(folder, 'there is no such folder')
  const text = await readFile(join(root, MANIFEST_FILE), 'utf8').catch(() => undefined)
  if (text === undefined)
    throw noBundle(
      folder,
      `it has no ${MANIFEST_FILE}; "tiltyard bundle new" writes a first bundle`,
    )
  const mistakes = collectMistakes()
  const source = { file: MANIFEST_FILE, text }
  const manifest =
    mistakes.read(source, manifestSchema) ??
    withoutBrokenKeys(text) ??
    mistakes.fail(nameOf(folder))
  for (const link of (await folderFiles(root)).links)
    mistakes.add(link, 'symbolic links are refused; put the file itself into the bundle')
  const files = folderReader(root)
  const data = await openData(manifest, source, options, mistakes)
  // The module reads it for all that follows.
  if (manifest.data !== undefined && data === undefined) mistakes.fail(nameOf(folder))
  return {
    manifest,
    source,
    files,
    data,
    context: loadContext(files, data, readSettings(manifest, options, mistakes)),
    options,
    mistakes,
  }
}

function noBundle(folder: string, why: string): ConfigError {
  return new ConfigError(nameOf(folder), [{ at: '', message: why }])
}

/** What a ConfigError about a bundle calls it. */
export function nameOf(folder: string): string {
  return `bundle "${folder}"`
}

/** The manifest without the keys that its schema refuses, when that leaves one that is whole. */
function withoutBrokenKeys(text: string): Manifest | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const first = manifestSchema.safeParse(value)
  if (first.success || typeof value !== 'object' || value === null) return undefined
  const broken = new Set(
    first.error.issues.flatMap((issue) =>
      issue.path.length === 0 && issue.code === 'unrecognized_keys' ? issue.keys : [issue.path[0]],
    ),
  )
  const kept = Object.fromEntries(Object.entries(value).filter(([key]) => !broken.has(key)))
  return manifestSchema.safeParse(kept).data
}

async function openData(
  manifest: Manifest,
  source: JsonSource,
  options: LoadOptions,
  mistakes: Mistakes,
): Promise<FolderReader | undefined> {
  if (manifest.data === undefined) {
    if (options.data !== undefined)
      mistakes.add(MANIFEST_FILE, `a folder of data was given, but the manifest asks for none`)
    return undefined
  }
  const { env = {} } = options
  const data = options.data ?? env[DATA_VARIABLE] ?? env[manifest.dataVariable ?? '']
  const root = data === undefined ? undefined : await realpath(data).catch(() => undefined)
  if (root === undefined || !(await stat(root)).isDirectory()) {
    const given = data === undefined ? 'none was given' : `there is no folder "${data}"`
    mistakes.addAt(source, ['data'], `a folder of data is needed, and ${given}. ${manifest.data}`)
    return undefined
  }
  return folderReader(root)
}

/** The settings in force. A name that the manifest doesn't have is a mistake. */
function readSettings(
  { settings = {} }: Manifest,
  { settings: given = {} }: LoadOptions,
  mistakes: Mistakes,
): JsonObject {
  const known = Object.keys(settings)
  for (const name of Object.keys(given))
    if (!known.includes(name)) mistakes.add('settings', unknownName('setting', name, known))
  return { ...settings, ...given }
}

function loadContext(
  files: FolderReader,
  data: FolderReader | undefined,
  settings: JsonObject,
): LoadContext {
  return {
    settings,
    ...textReaders((path) => files.text(path)),
    data: textReaders((path) => {
      if (data !== undefined) return data.text(path)
      const message = 'the manifest has no "data", so there is no folder of it'
      return Promise.reject(new ConfigError('data', [{ at: path, message }]))
    }),
  }
}

function textReaders(readText: (path: string) => Promise<string>): LoadContext['data'] {
  return {
    readText,
    readJson: async (path) => {
      const text = await readText(path)
      try {
        return JSON.parse(text) as JsonValue
      } catch (cause) {
        throw new ConfigError('data', [{ at: path, message: 'this is no JSON' }], { cause })
      }
    },
  }
}

/** What an error says in a mistake: of our own errors the mistakes alone. */
export function sentenceOf(error: unknown): string {
  if (TiltyardError.is(error, 'CONFIG') && 'mistakes' in error) {
    const { mistakes } = error as ConfigError
    return mistakes.map(({ at, message }) => (at === '' ? message : `${at}: ${message}`)).join('; ')
  }
  return error instanceof Error ? error.message : String(error)
}
