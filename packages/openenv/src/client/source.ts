import { createHash } from 'node:crypto'

import {
  NotFoundError,
  StateError,
  type TaskRef,
  type TaskSource,
  unknownName,
} from '@tiltyard/core'

import { openenvEnv } from './env.ts'
import { checkSourceOptions, type OpenEnvSourceOptions, type OpenEnvTask } from './options.ts'
import { askServer } from './server-facts.ts'

/**
 * The environments of an OpenEnv server as tasks: every episode has a connection, and so an environment, of its own. Its score
 * is the server's reward, under the step `reward`.
 * @throws ConfigError for wrong options, a server that can't be reached, and one that lists no tasks when none were named.
 */
export async function openenvSource(given: OpenEnvSourceOptions): Promise<TaskSource> {
  const options = checkSourceOptions(given)
  const facts = await askServer(options)
  const byId = new Map(
    Object.values(facts.tasks).flatMap((tasks) => tasks.map((task) => [task.id, task] as const)),
  )
  const basis = hashOf(facts.action, options.reward, options.actionTool)
  const refOf = (task: OpenEnvTask): TaskRef => ({
    id: task.id,
    fingerprint: hashOf(basis, task.reset),
  })
  const splits = Object.keys(facts.tasks)
  let isClosed = false
  return {
    specVersion: 'task-source/1',
    name: `openenv:${options.url.host}${options.url.pathname.replace(/\/+$/, '')}`,
    fingerprint: hashOf(basis, Object.entries(facts.tasks)),
    steps: options.steps,
    async *tasks(split) {
      const tasks =
        split === 'all' && !splits.includes('all') ? [...byId.values()] : facts.tasks[split]
      if (tasks === undefined)
        throw new NotFoundError(unknownName('split', split, ['all', ...splits]))
      for (const task of tasks) yield refOf(task)
    },
    prepare: () => Promise.resolve(),
    open({ id }, { seed }) {
      if (isClosed) return Promise.reject(new StateError('the source is closed'))
      const task = byId.get(id)
      if (task === undefined) return Promise.reject(new NotFoundError(`there is no task "${id}"`))
      return Promise.resolve(openenvEnv({ options, facts, task, seed }))
    },
    close() {
      isClosed = true
      return Promise.resolve()
    },
  }
}

function hashOf(...parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)
}
