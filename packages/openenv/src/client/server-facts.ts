import { ConfigError, type JsonObject, TiltyardError, withDeadline } from '@tiltyard/core'
import { z } from 'zod'

import { isJsonObject, jsonObject } from '../wire/json.ts'
import { type CheckedSourceOptions, type OpenEnvTask, routeOf } from './options.ts'

const schemaAnswer = z.looseObject({ action: jsonObject })
const splitsAnswer = z.array(z.looseObject({ name: z.string() }))
const taskAnswer = z.looseObject({ tasks: z.array(z.unknown()) })

/** What a server is, asked once. */
export interface ServerFacts {
  /** Whether a policy acts by tools, or by the one action that the schema describes. */
  readonly mode: 'tools' | 'action'
  readonly action: JsonObject
  readonly tasks: Readonly<Record<string, readonly OpenEnvTask[]>>
}

const TOOL_TITLES: ReadonlySet<unknown> = new Set(['Action', 'CallToolAction', 'ListToolsAction'])

/** @throws ConfigError when the server can't be reached, is no OpenEnv server, or lists no tasks. */
export async function askServer(options: CheckedSourceOptions): Promise<ServerFacts> {
  const { action } = await ask(options, '/schema', schemaAnswer)
  const { properties } = action
  const names = isJsonObject(properties) ? properties : {}
  const isTools = TOOL_TITLES.has(action['title']) || ('tool_name' in names && 'arguments' in names)
  return {
    mode: isTools ? 'tools' : 'action',
    action,
    tasks: options.tasks ?? (await listTasks(options)),
  }
}

/** All tasks of the task API, by split. */
async function listTasks(
  options: CheckedSourceOptions,
): Promise<Readonly<Record<string, readonly OpenEnvTask[]>>> {
  let environments: readonly string[]
  try {
    environments = await ask(options, '/list_environments', z.array(z.string()))
  } catch (error) {
    throw new ConfigError(
      'openenvSource',
      [
        {
          at: 'tasks',
          message: `${options.url.host} lists no tasks; name them: tasks: { train: [{ id: 'first', reset: { seed: 1 } }] }`,
        },
      ],
      { cause: error },
    )
  }
  const lists: [string, readonly OpenEnvTask[]][] = []
  for (const environment of environments) {
    const path = `/${encodeURIComponent(environment)}`
    for (const { name: split } of await ask(options, `${path}/splits`, splitsAnswer)) {
      const { tasks } = await ask(options, `${path}/tasks`, taskAnswer, { split })
      const listed = tasks.map((task, index): OpenEnvTask => {
        const id = isJsonObject(task) ? task['task_id'] : undefined
        return {
          id: typeof id === 'string' ? id : `${split}-${index}`,
          reset: typeof id === 'string' ? { split, index, task_id: id } : { split, index },
        }
      })
      lists.push([environments.length === 1 ? split : `${environment}/${split}`, listed])
    }
  }
  return Object.fromEntries(lists)
}

async function ask<Schema extends z.ZodType>(
  { url, headers, connectMs, messageMs, clock, fetch }: CheckedSourceOptions,
  path: string,
  schema: Schema,
  body?: JsonObject,
): Promise<z.output<Schema>> {
  const route = routeOf(url, 'http', path)
  // A query may hold a token.
  const shown = `${route.origin}${route.pathname}`
  const refused = (message: string, cause?: unknown) =>
    new ConfigError('openenvSource', [{ at: 'url', message }], { cause })
  try {
    return await withDeadline(
      async (signal) => {
        const response = await fetch(route, {
          method: body === undefined ? 'GET' : 'POST',
          headers: {
            ...headers,
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          signal,
        })
        if (!response.ok)
          throw refused(`${shown} answered ${response.status}; is it an OpenEnv server?`)
        const checked = schema.safeParse(await response.json())
        if (!checked.success)
          throw refused(`${shown} answered what no OpenEnv server does`, checked.error)
        return checked.data
      },
      { waitingFor: `an answer of ${route.host}`, milliseconds: connectMs + messageMs, clock },
    )
  } catch (error) {
    if (TiltyardError.is(error)) throw error
    throw refused(`${shown} can't be reached`, error)
  }
}
