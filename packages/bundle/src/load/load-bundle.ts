import { createHash } from 'node:crypto'

import type { BundleModule } from '../author/bundle-module.ts'
import type { ToolDefinition } from '../author/tool.ts'
import { type Bundle, bundleLimitDefaults, DEFAULT_CLOCK, type LoadedTool } from '../bundle.ts'
import { checkTasks } from './check-tasks.ts'
import { defined } from './defined.ts'
import { readEvals } from './evals.ts'
import { folderFiles } from './files.ts'
import { type Loading, type LoadOptions, nameOf, openFolder, sentenceOf } from './loading.ts'
import { loadModule, placeIn, plainImport } from './module.ts'
import {
  readReward,
  readSandbox,
  readSecrets,
  readSteps,
  readSystem,
  readTasks,
  readTools,
  readUniverse,
} from './read-parts.ts'
import { taskTable } from './tasks.ts'

/**
 * Reads a bundle's folder and checks everything in it, before anything is played.
 * @throws ConfigError with every mistake, each with its file and line.
 */
export async function loadBundle(folder: string, options: LoadOptions = {}): Promise<Bundle> {
  const loading = await openFolder(folder, options)
  const { manifest, files, mistakes } = loading
  const module = await readModule(loading)
  if (module === undefined) {
    taskTable((await readTasks(loading, {})).placed, mistakes)
    return mistakes.fail(nameOf(folder))
  }
  await checkNeeds(loading, module)
  const tools = await readTools(loading, await toolsOf(loading, module))
  const steps = readSteps(loading, module)
  const universe = await readUniverse(loading, module)
  const { placed, refused } = await readTasks(loading, module)
  const tasks = taskTable(placed, mistakes)
  const users = module.users ?? {}
  const taskFiles = await checkTasks(
    placed,
    {
      files,
      tools,
      steps,
      stepNames: manifest.steps.map(({ name }) => name),
      users: Object.keys(users),
      universe,
    },
    mistakes,
  )
  const evals = await readEvals(loading, module, tasks, refused)
  const reward = readReward(loading, placed)
  const system = await readSystem(loading, module)
  const sandbox = await readSandbox(loading)
  const secrets = readSecrets(loading)
  if (mistakes.count > 0) mistakes.fail(nameOf(folder))
  return {
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    license: manifest.license,
    folder: files.folder,
    fingerprint: await fingerprintOf(loading, tools),
    tasks,
    evals,
    tools,
    unknownTool: module.unknownTool,
    parallelCalls: manifest.parallelCalls ?? false,
    steps,
    reward,
    users,
    universe,
    system,
    ...taskFiles,
    clock: manifest.clock === undefined ? DEFAULT_CLOCK : Date.parse(manifest.clock),
    limits: { ...bundleLimitDefaults, ...defined(manifest.limits ?? {}) },
    sandbox,
    secrets,
  }
}

async function readModule(loading: Loading): Promise<BundleModule | undefined> {
  const { manifest, files, mistakes, source, options } = loading
  if (manifest.module === undefined) return {}
  try {
    await files.bytes(manifest.module)
  } catch {
    mistakes.addAt(source, ['module'], `there is no file "${manifest.module}" in the folder`)
    return undefined
  }
  const importModule = options.importModule ?? plainImport
  return loadModule(files.folder, manifest.module, importModule, mistakes)
}

/** @throws ConfigError with the mistakes so far, when the module lacks what it reads. */
async function checkNeeds(
  { manifest, source, files, mistakes, context }: Loading,
  { check }: BundleModule,
): Promise<void> {
  try {
    await check?.(context)
  } catch (error) {
    const whence = manifest.data === undefined ? '' : `. ${manifest.data}`
    mistakes.addAt(
      source,
      manifest.data === undefined ? [] : ['data'],
      `${sentenceOf(error)}${whence}`,
    )
    mistakes.fail(nameOf(files.folder))
  }
}

/** The module's tools, made where they are a function. */
async function toolsOf(
  { manifest, files, mistakes, context }: Loading,
  { tools = [] }: BundleModule,
): Promise<readonly ToolDefinition[]> {
  if (typeof tools !== 'function') return tools
  try {
    return await tools(context)
  } catch (error) {
    const at = placeIn(files.folder, error) ?? manifest.module ?? ''
    mistakes.add(at, `making the tools failed: ${sentenceOf(error)}`)
    return []
  }
}

async function fingerprintOf(
  { files, data, context }: Loading,
  tools: ReadonlyMap<string, LoadedTool>,
): Promise<string> {
  for (const file of (await folderFiles(files.folder)).files)
    if (!files.read.has(file)) await files.bytes(file)
  const parts = {
    files: sorted(files.read),
    data: sorted(data?.read ?? new Map()),
    tools: [...tools.values()].map(({ spec }) => spec),
    ...(Object.keys(context.settings).length === 0 ? {} : { settings: context.settings }),
  }
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

function sorted(read: ReadonlyMap<string, string>): readonly (readonly [string, string])[] {
  return [...read].toSorted(([left], [right]) => (left < right ? -1 : 1))
}
