import {
  ConfigError,
  type Env,
  type Mistake,
  nearest,
  NotFoundError,
  type OpenOptions,
  type PlayNeeds,
  StateError,
  type TaskRef,
  type TaskSource,
} from '@tiltyard/core'

import type { Bundle } from './bundle.ts'
import { ALL_TASKS } from './load/evals.ts'
import { bundleEnv, type PlayOptions } from './play/env.ts'
import { taskFingerprint } from './play/facts.ts'
import type { Task } from './task.ts'

/** A bundle's tasks as Envs. Closing it closes the provider of sandboxes too. */
export function bundleSource(bundle: Bundle, options: PlayOptions = {}): TaskSource {
  let isClosed = false
  return {
    specVersion: 'task-source/1',
    name: bundle.name,
    fingerprint: bundle.fingerprint,
    steps: bundle.steps.map(({ name }) => name),
    async *tasks(split) {
      for (const id of taskIds(bundle, split)) yield taskRef(bundle, id)
    },
    prepare: (needs) => {
      const mistakes = unmetNeeds(bundle, needs, options)
      if (mistakes.length > 0)
        return Promise.reject(new ConfigError(`bundle "${bundle.name}"`, mistakes))
      return Promise.resolve()
    },
    open: ({ id }: TaskRef, { seed }: OpenOptions): Promise<Env> => {
      if (isClosed) return Promise.reject(new StateError(`the source "${bundle.name}" is closed`))
      return Promise.resolve(bundleEnv(bundle, bundle.tasks.get(id), { ...options, seed }))
    },
    async close() {
      isClosed = true
      await options.sandboxes?.close()
    },
  }
}

export function taskRef(bundle: Bundle, id: string): TaskRef {
  const { tags } = bundle.tasks.get(id)
  const fingerprint = taskFingerprint(bundle, { id })
  return { id, fingerprint, ...(tags === undefined ? {} : { tags }) }
}

/** Ids of `all` tasks or of an eval's, in order. @throws NotFoundError naming the splits that exist. */
export function taskIds(bundle: Bundle, split: string): readonly string[] {
  if (split === ALL_TASKS) return bundle.tasks.ids
  const ids = bundle.evals.get(split)
  if (ids !== undefined) return ids
  const splits = [ALL_TASKS, ...bundle.evals.keys()]
  const near = nearest(split, splits)
  const hint = near === undefined ? '; there is' : `; did you mean "${near}"? There is`
  throw new NotFoundError(
    `bundle "${bundle.name}" has no eval "${split}"${hint} ${splits.join(', ')}`,
  )
}

/** How many of the tasks that need the same thing a mistake names. */
const NAMED_TASKS = 5

/** What tasks need that the player lacks, one mistake for each need. */
function unmetNeeds(
  bundle: Bundle,
  needs: PlayNeeds,
  { sandboxes }: PlayOptions,
): readonly Mistake[] {
  const tasks = bundle.tasks.ids.map((id) => bundle.tasks.get(id))
  const needing = (lacks: boolean, what: string, doesNeed: (task: Task) => boolean) => {
    const ids = lacks ? tasks.filter(doesNeed).map(({ id }) => `"${id}"`) : []
    if (ids.length === 0) return []
    const more = ids.length > NAMED_TASKS ? ` and ${ids.length - NAMED_TASKS} more` : ''
    const named = ids.slice(0, NAMED_TASKS).join(', ')
    return [{ at: '', message: `${what} (task ${named}${more})` }]
  }
  return [
    ...needing(!needs.tools, 'tasks have tools, and the renderer has no place for them', (task) =>
      hasTools(bundle, task),
    ),
    ...needing(!needs.images, 'tasks show images, and the renderer takes none', hasImages),
    ...needing(
      !needs.changedHead,
      'later turns change system prompt or tools, and the player keeps them',
      hasChangedHead,
    ),
    ...(bundle.sandbox !== undefined && sandboxes === undefined
      ? [{ at: '', message: 'the bundle works in a sandbox; pass "sandboxes", a provider of them' }]
      : []),
  ]
}

function hasTools(bundle: Bundle, { turns = [] }: Task): boolean {
  return (
    bundle.tools.size > 0 && (turns.length === 0 || turns.some(({ tools }) => tools?.length !== 0))
  )
}

function hasImages({ turns = [] }: Task): boolean {
  return turns.some(
    ({ prompt }) => typeof prompt !== 'string' && prompt.some(({ type }) => type === 'image'),
  )
}

function hasChangedHead({ turns = [] }: Task): boolean {
  return turns.slice(1).some(({ system, tools }) => system !== undefined || tools !== undefined)
}
