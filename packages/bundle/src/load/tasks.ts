import { NotFoundError, nearest } from '@tiltyard/core'

import type { TaskTable } from '../bundle.ts'
import { type Task, type TaskInput, taskSchema } from '../task.ts'
import { freezeJson } from '../universe/freeze.ts'
import type { JsonSource, Mistakes } from './mistakes.ts'

/** A task with where it is written. */
export interface PlacedTask {
  readonly task: Task
  readonly where: string
}

/** The tasks that were read, and the ids of those that were refused: evals may name them without a further mistake. */
export interface ReadTasks {
  readonly placed: PlacedTask[]
  readonly refused: Set<string>
}

/** Reads a file with one task a line. Empty lines don't count. Every broken line is a mistake. */
export function readTaskLines(
  file: string,
  text: string,
  mistakes: Mistakes,
  into: ReadTasks,
): void {
  for (const [index, line] of text.split('\n').entries())
    if (line.trim() !== '')
      readTask({ file, text: line, place: `${file}:${index + 1}` }, mistakes, into)
}

/** Checks the tasks that a module made. */
export function readModuleTasks(
  file: string,
  inputs: readonly TaskInput[],
  mistakes: Mistakes,
  into: ReadTasks,
): void {
  for (const [index, input] of inputs.entries())
    readTask(
      { file, text: JSON.stringify(input), place: `${file} tasks[${index}]` },
      mistakes,
      into,
    )
}

function readTask(
  source: Required<JsonSource>,
  mistakes: Mistakes,
  { placed, refused }: ReadTasks,
): void {
  const task = mistakes.read(source, taskSchema)
  if (task !== undefined) {
    freezeJson(task)
    placed.push({ task, where: source.place })
  } else refused.add(idIn(source.text) ?? source.place)
}

/** The id of a task that was refused, if that much can be read. */
function idIn(text: string): string | undefined {
  try {
    const { id } = JSON.parse(text) as { readonly id?: unknown }
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}

/** The tasks by id. A repeated id is a mistake that names both places. */
export function taskTable(placed: readonly PlacedTask[], mistakes: Mistakes): TaskTable {
  const byId = new Map<string, PlacedTask>()
  for (const entry of placed) {
    const first = byId.get(entry.task.id)
    if (first === undefined) byId.set(entry.task.id, entry)
    else mistakes.add(entry.where, `task "${entry.task.id}" is there already, at ${first.where}`)
  }
  const ids = [...byId.keys()]
  const find = (id: string) => {
    const found = byId.get(id)
    if (found !== undefined) return found
    const near = nearest(id, ids)
    throw new NotFoundError(
      `no task "${id}"${near === undefined ? '' : `; did you mean "${near}"?`}`,
    )
  }
  return {
    ids,
    has: (id) => byId.has(id),
    get: (id) => find(id).task,
    where: (id) => find(id).where,
  }
}
