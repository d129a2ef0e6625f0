import type { JsonValue } from '@tiltyard/core'

import { orAborted } from '../waiting.ts'
import type { Agent, AgentContext, AgentOutput, AgentTask } from './agent.ts'

/** A number is the reward; an output goes to verifiers; nothing leaves it to them and to `context.reward`. */
export type AgentFunction<Task extends AgentTask> = (
  task: Task,
  context: AgentContext,
) => Promise<number | void | AgentOutput>

/** An agent in this process. It is asked to stop by its signal, and not waited for after that. */
export function functionAgent<Task extends AgentTask>(
  run: AgentFunction<Task>,
  name = run.name === '' ? 'function' : run.name,
): Agent {
  return {
    name,
    async run({ task, context, signal }) {
      signal.throwIfAborted()
      const working = run(task as Task, context)
      working.catch(() => {})
      return outputOf(await orAborted(working, signal))
    },
  }
}

function outputOf(result: number | void | AgentOutput): AgentOutput {
  if (typeof result === 'number') return { reward: result }
  return result ?? {}
}

/** Whether a value is an agent rather than a function that is one. */
export function isAgent(value: object): value is Agent {
  return 'run' in value && typeof (value as { run: JsonValue }).run === 'function'
}
