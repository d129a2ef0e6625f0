import { deriveSeed, NotFoundError, type TaskRef, type TaskSource } from '@tiltyard/core'

import type { ResetRequest } from '../wire/frames.ts'

/** The tasks of a source, listed once. */
export interface TaskTable {
  /** @throws NotFoundError naming the splits that exist. */
  list(split: string): Promise<readonly TaskRef[]>
  /** The task and seed that a reset means. One that names no task gets the next of `all`, with a seed of its own. @throws NotFoundError */
  choose(request: ResetRequest): Promise<{ readonly task: TaskRef; readonly seed: number }>
}

export function createTaskTable(source: TaskSource, splits: readonly string[]): TaskTable {
  const lists = new Map<string, Promise<readonly TaskRef[]>>()
  let unnamed = 0

  const list = (split: string) => {
    if (!splits.includes(split))
      return Promise.reject(
        new NotFoundError(`there is no split "${split}"; there is ${splits.join(', ')}`),
      )
    let listed = lists.get(split)
    if (listed === undefined) {
      listed = collect(source.tasks(split))
      lists.set(split, listed)
    }
    return listed
  }

  return {
    list,
    async choose({ task_id: id, split, index, seed }) {
      const tasks = await list(split ?? 'all')
      const ordinal = unnamed
      const isNamed = typeof id === 'string' || typeof index === 'number'
      if (!isNamed || typeof seed !== 'number') unnamed += 1
      const task =
        typeof id === 'string'
          ? tasks.find((each) => each.id === id)
          : tasks[index ?? ordinal % tasks.length]
      if (task === undefined)
        throw new NotFoundError(
          typeof id === 'string'
            ? `there is no task "${id}" in ${split ?? 'all'}`
            : `${split ?? 'all'} has ${tasks.length} tasks; there is no index ${index}`,
        )
      return { task, seed: seed ?? deriveSeed(0, 'reset', ordinal) }
    },
  }
}

async function collect(tasks: AsyncIterable<TaskRef>): Promise<readonly TaskRef[]> {
  const all: TaskRef[] = []
  for await (const task of tasks) all.push(task)
  return all
}
