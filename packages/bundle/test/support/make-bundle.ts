import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import type { JsonObject, JsonValue } from '@tiltyard/core'
import { afterAll } from 'vitest'

import {
  type Bundle,
  type BundleModule,
  loadBundle,
  type LoadOptions,
  type TaskInput,
} from '../../src/index.ts'

export interface BundleParts<State = JsonValue> {
  /** Over the smallest manifest that loads. A member that is undefined is left out. */
  readonly manifest?: Readonly<Record<string, unknown>>
  readonly tasks?: readonly TaskInput[]
  readonly universe?: JsonObject
  /** In the place of what the manifest's module exports. */
  readonly module?: BundleModule<State>
  /** Further files, by path; text replaces what the parts above make. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  readonly load?: LoadOptions
}

export const oneTask: readonly TaskInput[] = [{ id: 'one', turns: [{ prompt: 'Go.' }] }]

const made: string[] = []
afterAll(async () => {
  await Promise.all(made.splice(0).map((folder) => rm(folder, { recursive: true, force: true })))
})

/** An empty folder, there until the test file is done. */
export async function freshFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tiltyard-bundle-')))
  made.push(folder)
  return folder
}

/** Writes a bundle into a fresh folder: a manifest, tasks, a universe, a module's empty file. */
export async function writeBundle<State = JsonValue>(parts: BundleParts<State>): Promise<string> {
  const folder = await freshFolder()
  const files = { ...defaultFiles(parts), ...parts.files }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

/** Writes a bundle and loads it, its module taken from memory. */
export async function makeBundle<State = JsonValue>(
  parts: BundleParts<State> = {},
): Promise<Bundle> {
  const folder = await writeBundle(parts)
  const module = parts.module ?? { verifiers: { always: () => 1 } }
  return await loadBundle(folder, {
    importModule: () => Promise.resolve({ bundle: module }),
    ...parts.load,
  })
}

function defaultFiles({
  manifest,
  tasks = oneTask,
  universe = {},
}: Omit<BundleParts, 'module'>): Record<string, string> {
  const whole = {
    formatVersion: 1,
    name: 'trial',
    module: 'bundle.mjs',
    tasks: ['tasks.jsonl'],
    universe: { kind: 'json', base: 'universe.json' },
    steps: [{ name: 'always', use: 'always' }],
    ...manifest,
  }
  return {
    'bundle.json': `${JSON.stringify(whole, undefined, 2)}\n`,
    'bundle.mjs': 'export const bundle = { verifiers: { always: () => 1 } }\n',
    'universe.json': JSON.stringify(universe),
    'tasks.jsonl': tasks.map((task) => `${JSON.stringify(task)}\n`).join(''),
  }
}
