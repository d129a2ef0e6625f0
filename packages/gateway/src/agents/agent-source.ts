import { createHash } from 'node:crypto'

import {
  checkOptions,
  ConfigError,
  NotFoundError,
  unknownName,
  type TaskRef,
  type TaskSource,
} from '@tiltyard/core'
import { z } from 'zod'

import type { TrainFilter } from '../attempt.ts'
import type { Gateway } from '../gateway.ts'
import type { Agent, AgentTask } from './agent.ts'
import { agentEpisode, type AgentVerifier, type OnAgentError } from './episode.ts'
import { functionAgent, isAgent, type AgentFunction } from './function.ts'

/** An agent, its tasks, and how what it does is scored. */
export interface AgentSourceOptions<Task extends AgentTask> {
  /** Default: the agent's name. */
  readonly name?: string
  readonly gateway: Gateway
  /** The agent: a function, `commandAgent(…)` or `remoteAgent(…)`. */
  readonly agent: AgentFunction<Task> | Agent
  /** Changes when the agent does: part of what makes two runs comparable. Default empty. */
  readonly version?: string
  /** All tasks, or those of each split by its name. Ids are unique. */
  readonly tasks: readonly Task[] | Readonly<Record<string, readonly Task[]>>
  /** Names of rewards that the agent may give; a returned number is the first. Default `['reward']` without verifiers, else none. */
  readonly rewards?: readonly string[]
  /** Scoring steps that look at what the agent left, by name. What they throw is no score: they are asked again. */
  readonly verifiers?: Readonly<Record<string, AgentVerifier<Task>>>
  /** Which replies are trained, by agent, purpose, or what they are. Judges never are. Default: all others. */
  readonly trains?: TrainFilter
  /** Default `fail`. */
  readonly onAgentError?: OnAgentError
}

const defined = z.custom<never>((value) => value !== undefined && value !== null)
const schema = z.strictObject({
  name: z.string().min(1).optional(),
  gateway: defined,
  agent: defined,
  version: z.string().optional(),
  tasks: defined,
  rewards: z.array(z.string().min(1)).optional(),
  verifiers: z.record(z.string(), defined).optional(),
  trains: defined.optional(),
  onAgentError: z.enum(['fail', 'score']).optional(),
})

/**
 * Tasks that an agent plays which brings its own loop: it only knows a base URL and a key. Its episodes are like all others: same
 * groups, limits, ends, reward rules and records.
 * @throws ConfigError
 */
export function agentSource<Task extends AgentTask>(options: AgentSourceOptions<Task>): TaskSource {
  checkOptions('agentSource', schema, options)
  const { gateway, verifiers = {}, version = '', trains, onAgentError = 'fail' } = options
  const agent: Agent = isAgent(options.agent) ? options.agent : functionAgent(options.agent)
  const rewards = options.rewards ?? (Object.keys(verifiers).length === 0 ? ['reward'] : [])
  const splits = splitsOf(options.tasks)
  const byId = uniqueTasks(splits.get('all')!)
  const steps = [...rewards, ...Object.keys(verifiers)]
  if (new Set(steps).size < steps.length)
    throw new ConfigError('agentSource', [
      { at: 'verifiers', message: `two scoring steps have one name: ${steps.join(', ')}` },
    ])
  const how = `${agent.name}\u0000${version}\u0000${steps.join('\u0000')}`
  const ref = (task: Task): TaskRef => ({
    id: task.id,
    fingerprint: hash(`${how}\u0000${JSON.stringify(task)}`),
  })
  return {
    specVersion: 'task-source/1',
    name: options.name ?? agent.name,
    fingerprint: hash([...byId.values()].map((task) => ref(task).fingerprint).join()),
    steps,
    async *tasks(split) {
      const tasks = splits.get(split)
      if (tasks === undefined)
        throw new NotFoundError(unknownName('split', split, [...splits.keys()]))
      for (const task of tasks) yield ref(task)
    },
    async prepare() {},
    async open({ id }, { seed, signal }) {
      signal.throwIfAborted()
      const task = byId.get(id)
      if (task === undefined) throw new NotFoundError(`there is no task "${id}"`)
      return agentEpisode({
        gateway,
        agent,
        task,
        seed,
        rewards,
        verifiers: verifiers as Readonly<Record<string, AgentVerifier<AgentTask>>>,
        trains,
        onAgentError,
      })
    },
    async close() {},
  }
}

function splitsOf<Task extends AgentTask>(
  tasks: AgentSourceOptions<Task>['tasks'],
): ReadonlyMap<string, readonly Task[]> {
  if (Array.isArray(tasks)) return new Map([['all', tasks as readonly Task[]]])
  const named = Object.entries(tasks as Readonly<Record<string, readonly Task[]>>)
  return new Map([['all', [...new Set(named.flatMap(([, list]) => list))]], ...named])
}

function uniqueTasks<Task extends AgentTask>(tasks: readonly Task[]): ReadonlyMap<string, Task> {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  if (byId.size === tasks.length && tasks.length > 0) return byId
  const message = tasks.length === 0 ? 'there is no task' : 'two tasks have one id; ids are unique'
  throw new ConfigError('agentSource', [{ at: 'tasks', message }])
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}
