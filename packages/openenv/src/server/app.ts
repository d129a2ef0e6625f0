import { type JsonObject, NotFoundError, summarizeError } from '@tiltyard/core'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { z } from 'zod'

import {
  actionSchema,
  MAX_FRAME_BYTES,
  observationBody,
  resetSchema,
  validationErrors,
} from '../wire/frames.ts'
import { jsonObject } from '../wire/json.ts'
import { environmentSchemas } from '../wire/schemas.ts'
import { act } from './act.ts'
import { isLetIn } from './admission.ts'
import { answerRpc, unreadableRpc } from './json-rpc.ts'
import type { CheckedServerOptions } from './options.ts'
import { CapacityError, type Session, type Sessions } from './sessions.ts'
import type { TaskTable } from './tasks.ts'

const stepSchema = z.looseObject({ action: jsonObject })
const splitSchema = z.looseObject({ split: z.string() })
const taskSchema = z.looseObject({ split: z.string(), index: z.int() })
const rangeSchema = z.looseObject({
  split: z.string(),
  start: z.int().min(0).nullish(),
  stop: z.int().min(0).nullish(),
})

export interface AppParts {
  readonly options: CheckedServerOptions
  readonly sessions: Sessions
  readonly tasks: TaskTable
}

/** All routes but the sockets. */
export function createApp({ options, sessions, tasks }: AppParts): Hono {
  const { source, about, keys, production, nestedMetadata } = options
  const name = about.name ?? source.name
  const app = new Hono()

  app.get('/health', (context) => context.json({ status: 'healthy' }))
  app.use(async (context, next) => {
    if (isLetIn(context.req.header('authorization'), keys)) return await next()
    return context.json({ detail: 'this server asks for a key: Authorization: Bearer <key>' }, 401)
  })
  app.use(bodyLimit({ maxSize: MAX_FRAME_BYTES }))
  app.onError((error, context) => {
    if (error instanceof Misfit) return context.json({ detail: error.errors }, 422)
    if (NotFoundError.is(error, 'NOT_FOUND')) return context.json({ detail: error.message }, 404)
    if (error instanceof CapacityError) return context.json({ detail: error.message }, 503)
    return context.json({ detail: summarizeError(error).message }, 500)
  })

  app.get('/metadata', (context) =>
    context.json({
      name,
      description: about.description ?? `${name}, served by Tiltyard`,
      readme_content: about.readme ?? null,
      version: about.version ?? '1.0.0',
      author: about.author ?? null,
      documentation_url: null,
    }),
  )
  app.get('/schema', (context) => context.json(environmentSchemas))
  app.get('/openapi.json', (context) => context.json(openApi(production)))
  app.post('/mcp', async (context) => {
    let body: unknown
    try {
      body = await context.req.json()
    } catch {
      return context.json(unreadableRpc())
    }
    return context.json(await answerRpc(body, { sessions }))
  })

  if (!production) {
    // Each request has an environment of its own, as in OpenEnv's own servers.
    const alone = async (work: (session: Session) => Promise<JsonObject>) => {
      const session = await sessions.open('http')
      try {
        return await work(session)
      } finally {
        await session.finish()
      }
    }
    app.post('/reset', async (context) => {
      const request = await bodyOf(context, resetSchema, {})
      return context.json(
        await alone(async (session) =>
          observationBody(
            await session.run('a reset', (play, signal) => play.reset(request, signal)),
            nestedMetadata,
          ),
        ),
      )
    })
    app.post('/step', async (context) => {
      const { action: fields } = await bodyOf(context, stepSchema)
      const action = fitting(actionSchema, fields, ['body', 'action'])
      return context.json(
        await alone(async (session) => {
          if (action.type !== 'list_tools')
            await session.run('a reset', (play, signal) => play.reset({}, signal))
          return observationBody(await act(session, action), nestedMetadata)
        }),
      )
    })
    app.get('/state', async (context) =>
      context.json(
        await alone((session) => session.run('the state', (play) => Promise.resolve(play.state()))),
      ),
    )
  }

  addTaskRoutes(app, { options, tasks, name })
  return app
}

/** The task API: a split of tasks, a task by its index. A task is what `reset` takes to play it. */
function addTaskRoutes(
  app: Hono,
  { options, tasks, name }: { options: CheckedServerOptions; tasks: TaskTable; name: string },
): void {
  const listOf = async (context: Context, split: string) => {
    if (context.req.param('env') !== name)
      throw new NotFoundError(`there is no environment of that name; there is ${name}`)
    return (await tasks.list(split)).map((task, index) => ({ task_id: task.id, split, index }))
  }
  app.get('/list_environments', (context) => context.json([name]))
  app.get('/:env/splits', async (context) => {
    await listOf(context, 'all')
    return context.json(options.splits.map((split) => ({ name: split, type: splitType(split) })))
  })
  app.post('/:env/tasks', async (context) => {
    const { split } = await bodyOf(context, splitSchema)
    return context.json({ tasks: await listOf(context, split), env_name: name })
  })
  app.post('/:env/num_tasks', async (context) => {
    const { split } = await bodyOf(context, splitSchema)
    return context.json({ num_tasks: (await listOf(context, split)).length })
  })
  app.post('/:env/task', async (context) => {
    const { split, index } = await bodyOf(context, taskSchema)
    const task = (await listOf(context, split))[index]
    if (task === undefined) return context.json({ detail: `${split} has no index ${index}` }, 400)
    return context.json({ task })
  })
  app.post('/:env/task_range', async (context) => {
    const { split, start, stop } = await bodyOf(context, rangeSchema)
    const all = await listOf(context, split)
    return context.json({ tasks: all.slice(start ?? 0, stop ?? all.length) })
  })
}

function splitType(split: string): string {
  return ['train', 'test'].includes(split) ? split : 'validation'
}

/** A body that doesn't fit. */
class Misfit extends Error {
  readonly errors: ReturnType<typeof validationErrors>

  constructor(errors: ReturnType<typeof validationErrors>) {
    super('the body does not fit')
    this.errors = errors
  }
}

async function bodyOf<Schema extends z.ZodType>(
  context: Context,
  schema: Schema,
  absent?: z.output<Schema>,
): Promise<z.output<Schema>> {
  const text = await context.req.text()
  if (text === '' && absent !== undefined) return absent
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new Misfit([{ type: 'json_invalid', loc: ['body'], msg: 'JSON decode error' }])
  }
  return fitting(schema, body, ['body'])
}

function fitting<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  at: readonly string[],
): z.output<Schema> {
  const checked = schema.safeParse(value, { reportInput: true })
  if (checked.success) return checked.data
  throw new Misfit(validationErrors(checked.error, at))
}

function openApi(production: boolean): JsonObject {
  const get = { get: { responses: { 200: { description: 'Successful Response' } } } }
  const post = { post: { responses: { 200: { description: 'Successful Response' } } } }
  return {
    openapi: '3.1.0',
    info: { title: 'OpenEnv Environment HTTP API', version: '1.0.0' },
    paths: {
      '/health': get,
      '/metadata': get,
      '/schema': get,
      '/mcp': post,
      ...(production ? {} : { '/reset': post, '/step': post, '/state': get }),
    },
  }
}
