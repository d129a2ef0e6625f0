import type { TaskFacts } from '../author/tool.ts'
import type { Task } from '../task.ts'

/** What tools and users may know of a task. Gold and expected values stay behind. */
export function factsOf({ id, tags = [], meta = {} }: Task): TaskFacts {
  return { id, tags, meta }
}
