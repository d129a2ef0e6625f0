import { readImage, unknownName } from '@tiltyard/core'

import type { BundleImage, LoadedStep, LoadedTool } from '../bundle.ts'
import type { Task } from '../task.ts'
import type { UniverseSource } from '../universe/universe.ts'
import type { FolderReader } from './files.ts'
import { sentenceOf } from './loading.ts'
import type { Mistakes } from './mistakes.ts'
import { withoutLastNewline } from './read-parts.ts'
import type { PlacedTask } from './tasks.ts'

/** What tasks refer to by name. */
export interface TaskParts {
  readonly files: FolderReader
  readonly tools: ReadonlyMap<string, LoadedTool>
  readonly steps: readonly LoadedStep[]
  /** Also of those that have no verifier. */
  readonly stepNames: readonly string[]
  readonly users: readonly string[]
  readonly universe: UniverseSource
}

/** The files that tasks refer to, read once. */
export interface TaskFiles {
  readonly texts: ReadonlyMap<string, string>
  readonly images: ReadonlyMap<string, BundleImage>
}

/** Checks that all that the tasks name exists and fits. */
export async function checkTasks(
  placed: readonly PlacedTask[],
  parts: TaskParts,
  mistakes: Mistakes,
): Promise<TaskFiles> {
  const texts = new Map<string, string>()
  const images = new Map<string, BundleImage>()
  for (const { task, where } of placed) {
    const add = (message: string) => mistakes.add(where, message)
    checkPrompts(task, parts, add)
    checkStart(task, parts, add)
    await checkGold(task, parts, add)
    checkSteps(task, parts, add)
    for (const { system, prompt } of task.turns ?? []) {
      if (typeof system === 'string' && !texts.has(system)) await readText(system, add)
      for (const part of typeof prompt === 'string' ? [] : prompt)
        if (part.type === 'image' && !images.has(part.file)) await readPicture(part.file, add)
    }
  }
  return { texts, images }

  async function readText(path: string, add: (message: string) => void): Promise<void> {
    try {
      texts.set(path, withoutLastNewline(await parts.files.text(path)))
    } catch (error) {
      add(`the system prompt can't be read: ${sentenceOf(error)}`)
    }
  }

  async function readPicture(path: string, add: (message: string) => void): Promise<void> {
    try {
      const image = readImage(await parts.files.bytes(path))
      if (image === undefined) add(`"${path}" is no PNG and no JPEG`)
      else images.set(path, image)
    } catch (error) {
      add(`the image can't be read: ${sentenceOf(error)}`)
    }
  }
}

type Add = (message: string) => void

function checkPrompts(task: Task, { tools, users }: TaskParts, add: Add): void {
  if (task.turns === undefined && task.user === undefined)
    add('the task has neither "turns" nor a "user"')
  if (task.turns !== undefined && task.user !== undefined)
    add('the task has both "turns" and a "user"; keep one')
  if (task.user !== undefined && !users.includes(task.user.use))
    add(unknownName('user', task.user.use, users))
  for (const name of (task.turns ?? []).flatMap((turn) => turn.tools ?? []))
    if (!tools.has(name)) add(unknownName('tool', name, [...tools.keys()]))
}

function checkStart({ start }: Task, { universe }: TaskParts, add: Add): void {
  if (start === undefined) return
  try {
    universe.open(start)
  } catch (error) {
    add(`start: ${sentenceOf(error)}`)
  }
}

function checkSteps(task: Task, { steps, stepNames }: TaskParts, add: Add): void {
  for (const name of task.steps ?? [])
    if (!stepNames.includes(name)) add(unknownName('scoring step', name, stepNames))
  for (const { name, lacks } of steps) {
    const lacking = (task.steps?.includes(name) ?? true) ? lacks?.(task) : undefined
    if (lacking !== undefined) add(`step "${name}": ${lacking}`)
  }
}

async function checkGold({ gold }: Task, { tools }: TaskParts, add: Add): Promise<void> {
  for (const [index, call] of (gold?.calls ?? []).entries()) {
    const tool = tools.get(call.name)
    const checked = await tool?.check(call.arguments)
    if (checked === undefined)
      add(`gold call ${index}: ${unknownName('tool', call.name, [...tools.keys()])}`)
    else if ('error' in checked) add(`gold call ${index}, ${call.name}: ${checked.error}`)
  }
}
