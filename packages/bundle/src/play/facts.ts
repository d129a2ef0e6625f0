import { createHash } from 'node:crypto'

import type { TaskFacts } from '../author/tool.ts'
import type { Bundle } from '../bundle.ts'
import type { Task } from '../task.ts'

/** What tools and users may know of a task. Gold and expected values stay behind. */
export function factsOf({ id, tags = [], meta = {} }: Task): TaskFacts {
  return { id, tags, meta }
}

/** What time it is for a task's tools, in milliseconds since 1970. */
export function clockOf(bundle: Bundle, { clock }: Task): number {
  return clock === undefined ? bundle.clock : Date.parse(clock)
}

/** Hash of a task with all that it is played with: the whole bundle. */
export function taskFingerprint(bundle: Bundle, { id }: Pick<Task, 'id'>): string {
  return hashOf(bundle.fingerprint, id)
}

/** Hash of a task with its seed's choices made: equal for the members of a group. */
export function instanceOf(bundle: Bundle, task: Pick<Task, 'id'>, seed: number): string {
  return hashOf(bundle.fingerprint, task.id, String(seed))
}

export function hashOf(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}
