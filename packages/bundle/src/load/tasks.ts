import { NotFoundError, nearest } from '@tiltyard/core'

import type { TaskTable } from '../bundle.ts'
import { type Task, type TaskInput, taskSchema } from '../task.ts'
import type { Mistakes } from './mistakes.ts'

/** A task with where it is written. */
export interface PlacedTask {
  readonly task: Task
  readonly where: string
}

/** Reads a file with one task a line. Empty lines don't count. Every broken line is a mistake. */
export function readTaskLines(
  file: string,
  text: string,
  mistakes: Mistakes,
): readonly PlacedTask[] {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const place = `${file}:${index + 1}`
    const task = mistakes.read({ file, text: line, place }, taskSchema)
    return task === undefined ? [] : [{ task, where: place }]
  })
}

/** Checks the tasks that a module made. */
export function readModuleTasks(
  file: string,
  inputs: readonly TaskInput[],
  mistakes: Mistakes,
): readonly PlacedTask[] {
  return inputs.flatMap((input, index) => {
    const place = `${file} tasks[${index}]`
    const task = mistakes.read({ file, text: JSON.stringify(input), place }, taskSchema)
    return task === undefined ? [] : [{ task, where: place }]
  })
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
