import { type JsonValue, type RewardRule, unknownName } from '@tiltyard/core'

import type { BundleModule } from '../author/bundle-module.ts'
import type { ToolDefinition } from '../author/tool.ts'
import type { BundleSandbox, LoadedStep, LoadedTool } from '../bundle.ts'
import { bashTool } from '../play/bash.ts'
import { rewardRule } from '../reward/spec.ts'
import { jsonUniverse } from '../universe/json.ts'
import type { UniverseSource } from '../universe/universe.ts'
import { builtInVerifiers } from '../verifiers/built-in.ts'
import { defined } from './defined.ts'
import { folderFiles } from './files.ts'
import { type Loading, sentenceOf } from './loading.ts'
import { lineOfName, placeIn } from './module.ts'
import { type PlacedTask, readModuleTasks, type ReadTasks, readTaskLines } from './tasks.ts'
import { loadTool } from './tools.ts'

/** The bundle's tools in the manifest's order. */
export async function readTools(
  loading: Loading,
  definitions: readonly ToolDefinition[],
): Promise<ReadonlyMap<string, LoadedTool>> {
  const { manifest, mistakes, source } = loading
  const all = new Map<string, LoadedTool>()
  if (manifest.sandbox !== undefined) all.set('bash', loadTool(bashTool))
  const text =
    manifest.module === undefined ? '' : await loading.files.text(manifest.module).catch(() => '')
  const at = (name: string) => lineOfName(manifest.module ?? '', text, name)
  for (const definition of definitions) {
    const { name } = definition
    if (all.has(name)) mistakes.add(at(name), `two tools are called "${name}"`)
    try {
      all.set(name, loadTool(definition))
    } catch (error) {
      mistakes.add(at(name), sentenceOf(error))
    }
  }
  if (manifest.tools === undefined) return all
  const broken = new Set(definitions.map(({ name }) => name))
  const chosen = new Map<string, LoadedTool>()
  for (const [index, name] of manifest.tools.entries()) {
    const tool = all.get(name)
    if (chosen.has(name)) mistakes.addAt(source, ['tools', index], `tool "${name}" is listed twice`)
    else if (tool !== undefined) chosen.set(name, tool)
    else if (!broken.has(name))
      mistakes.addAt(source, ['tools', index], unknownName('tool', name, [...all.keys()]))
  }
  return chosen
}

/** Names that a reward rule takes for itself. */
const reservedSteps = ['weighted']

export function readSteps(loading: Loading, module: BundleModule): readonly LoadedStep[] {
  const { manifest, mistakes, source } = loading
  const own = module.verifiers ?? {}
  const known = [...Object.keys(own), ...Object.keys(builtInVerifiers)]
  const steps: LoadedStep[] = []
  for (const [index, { name, use, weight, options }] of manifest.steps.entries()) {
    const builtIn = Object.hasOwn(own, use) ? undefined : builtInVerifiers[use]
    const verifier = builtIn?.verifier ?? own[use]
    if (reservedSteps.includes(name))
      mistakes.addAt(source, ['steps', index, 'name'], `"${name}" can't be a step's name`)
    if (steps.some((step) => step.name === name))
      mistakes.addAt(source, ['steps', index, 'name'], `two steps are called "${name}"`)
    if (verifier === undefined)
      mistakes.addAt(source, ['steps', index, 'use'], unknownName('verifier', use, known))
    else
      steps.push({
        name,
        weight: weight ?? 1,
        options: options ?? {},
        verifier,
        ...(builtIn === undefined ? {} : { lacks: builtIn.lacks }),
      })
  }
  return steps
}

export async function readUniverse(
  { manifest, mistakes, source, context }: Loading,
  module: BundleModule,
): Promise<UniverseSource> {
  const place = manifest.universe === undefined ? [] : ['universe']
  if (manifest.universe !== undefined && module.universe !== undefined)
    mistakes.addAt(source, place, 'both the manifest and the module give a universe; keep one')
  try {
    const base: JsonValue =
      manifest.universe === undefined
        ? ((await module.universe?.(context)) ?? {})
        : await context.readJson(manifest.universe.base)
    if (typeof base === 'object' && base !== null) return jsonUniverse(base)
    mistakes.addAt(source, place, 'a universe is a JSON object')
  } catch (error) {
    mistakes.addAt(source, place, `the universe can't be read: ${sentenceOf(error)}`)
  }
  return jsonUniverse({})
}

export async function readTasks(loading: Loading, module: BundleModule): Promise<ReadTasks> {
  const { manifest, mistakes, source, files, context } = loading
  const read: ReadTasks = { placed: [], refused: new Set() }
  for (const [index, file] of (manifest.tasks ?? []).entries()) {
    try {
      readTaskLines(file, await files.text(file), mistakes, read)
    } catch (error) {
      mistakes.addAt(source, ['tasks', index], `the tasks can't be read: ${sentenceOf(error)}`)
    }
  }
  if (module.tasks !== undefined) {
    const path = manifest.module ?? ''
    try {
      readModuleTasks(path, await module.tasks(context), mistakes, read)
    } catch (error) {
      mistakes.add(
        placeIn(files.folder, error) ?? path,
        `making the tasks failed: ${sentenceOf(error)}`,
      )
    }
  }
  if (manifest.tasks === undefined && module.tasks === undefined)
    mistakes.addAt(
      source,
      [],
      'there are no tasks; name files under "tasks", or export a function "tasks"',
    )
  return read
}

/** The manifest's rule, or the only step's; undefined when whoever plays must name one. */
export function readReward(
  { manifest, mistakes, source }: Loading,
  placed: readonly PlacedTask[],
): RewardRule | undefined {
  // Also the steps whose verifier is missing: that mistake has been told of.
  const steps = manifest.steps.map(({ name, weight = 1 }) => ({ name, weight }))
  const all = steps.map(({ name }) => name)
  const sets = new Map(
    placed.map(({ task }) => [(task.steps ?? all).join('\n'), task.steps ?? all]),
  )
  const rule = rewardRule(manifest.reward, steps)
  for (const recorded of sets.values()) {
    try {
      rule.check(recorded)
    } catch (error) {
      if (manifest.reward !== undefined) mistakes.addAt(source, ['reward'], sentenceOf(error))
      return undefined
    }
  }
  return rule
}

export async function readSystem(
  { manifest, mistakes, source, context }: Loading,
  module: BundleModule,
): Promise<string> {
  if (manifest.system !== undefined && module.system !== undefined)
    mistakes.addAt(
      source,
      ['system'],
      'both the manifest and the module give a system prompt; keep one',
    )
  try {
    if (manifest.system !== undefined)
      return withoutLastNewline(await context.readText(manifest.system))
    return (await module.system?.(context)) ?? ''
  } catch (error) {
    mistakes.addAt(source, ['system'], `the system prompt can't be read: ${sentenceOf(error)}`)
    return ''
  }
}

export function withoutLastNewline(text: string): string {
  return text.replace(/\r?\n$/, '')
}

export async function readSandbox({
  manifest,
  mistakes,
  source,
  files,
}: Loading): Promise<BundleSandbox | undefined> {
  if (manifest.sandbox === undefined) return undefined
  const { files: folder, ...limits } = manifest.sandbox
  const contents = new Map<string, Uint8Array>()
  if (folder !== undefined) {
    const under = `${folder.replace(/\/$/, '')}/`
    const inside = (await folderFiles(files.folder)).files.filter((file) => file.startsWith(under))
    if (inside.length === 0)
      mistakes.addAt(source, ['sandbox', 'files'], `the folder "${folder}" has no files`)
    for (const file of inside) contents.set(file.slice(under.length), await files.bytes(file))
  }
  return { files: contents, limits: defined(limits) }
}

export function readSecrets({
  manifest,
  mistakes,
  source,
  options,
}: Loading): Readonly<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const [index, name] of (manifest.secrets ?? []).entries()) {
    const value = options.env?.[name]
    if (value === undefined || value === '')
      mistakes.addAt(source, ['secrets', index], `the secret "${name}" has no value`)
    else found[name] = value
  }
  return found
}
