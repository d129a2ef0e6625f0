import { type JsonObject, nearest, unknownName } from '@tiltyard/core'

import type { BundleModule } from '../author/bundle-module.ts'
import type { TaskTable } from '../bundle.ts'
import { sameJson } from '../universe/compare.ts'
import { type Loading, sentenceOf } from './loading.ts'

/** The split of all tasks; no eval may take its name. */
export const ALL_TASKS = 'all'

/** The evals' tasks by name, those of the manifest first. Tasks that were refused have been told of already. */
export async function readEvals(
  loading: Loading,
  module: BundleModule,
  tasks: TaskTable,
  refused: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { manifest, mistakes, source, context } = loading
  const evals = new Map<string, readonly string[]>()
  const add = (name: string, ids: readonly string[], at: (index?: number) => string) => {
    if (name === ALL_TASKS)
      mistakes.add(at(), `"${ALL_TASKS}" is the name of all tasks; call the eval something else`)
    if (evals.has(name)) mistakes.add(at(), `two evals are called "${name}"`)
    const seen = new Set<string>()
    for (const [index, id] of ids.entries()) {
      if (!tasks.has(id) && !refused.has(id))
        mistakes.add(at(index), `eval "${name}": ${unknownTask(id, tasks)}`)
      if (seen.has(id)) mistakes.add(at(index), `eval "${name}": task "${id}" is listed twice`)
      seen.add(id)
    }
    if (ids.length === 0 && refused.size === 0) mistakes.add(at(), `eval "${name}" has no tasks`)
    evals.set(name, ids)
  }
  for (const [name, spec] of Object.entries(manifest.evals ?? {})) {
    const here = mistakes.place(source, ['evals', name])
    if ('ids' in spec)
      add(name, spec.ids, (index) =>
        index === undefined ? here : mistakes.place(source, ['evals', name, 'ids', index]),
      )
    else if ('file' in spec) await addFile(name, spec.file, here)
    else add(name, chosen(spec.where, tasks), () => here)
  }
  const path = manifest.module ?? ''
  try {
    for (const [name, ids] of Object.entries((await module.evals?.(context)) ?? {}))
      add(name, ids, () => path)
  } catch (error) {
    mistakes.add(path, `making the evals failed: ${sentenceOf(error)}`)
  }
  return evals

  async function addFile(name: string, file: string, here: string): Promise<void> {
    try {
      const lines = (await loading.files.text(file))
        .split('\n')
        .map((line) => line.replace(/\r$/, ''))
      const listed = lines.flatMap((id, index) => (id === '' ? [] : [{ id, line: index + 1 }]))
      const ids = listed.map(({ id }) => id)
      add(name, ids, (index) => (index === undefined ? here : `${file}:${listed[index]!.line}`))
    } catch (error) {
      mistakes.add(here, `eval "${name}" can't be read: ${sentenceOf(error)}`)
    }
  }
}

function unknownTask(id: string, tasks: TaskTable): string {
  const near = nearest(id, tasks.ids)
  return unknownName('task', id, near === undefined ? [] : [near])
}

interface Where {
  readonly tags?: readonly string[] | undefined
  readonly meta?: JsonObject | undefined
}

function chosen({ tags = [], meta = {} }: Where, tasks: TaskTable): readonly string[] {
  return tasks.ids.filter((id) => {
    const task = tasks.get(id)
    return (
      tags.every((tag) => task.tags?.includes(tag)) &&
      Object.entries(meta).every(([key, value]) => sameJson(task.meta?.[key], value))
    )
  })
}
