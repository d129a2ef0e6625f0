import { type JsonObject, type JsonValue, summarizeError } from '@tiltyard/core'
import { z } from 'zod'

import { isJsonObject, jsonObject } from '../wire/json.ts'
import { END_TURN, rpcTool, toolResult } from '../wire/tools.ts'
import { act, toolList } from './act.ts'
import { CapacityError, type Session, type Sessions } from './sessions.ts'

const requestSchema = z.looseObject({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: jsonObject.default(() => ({})),
  id: z.union([z.string(), z.number(), z.null()]).default(null),
})

const codes = {
  parse: -32_700,
  invalid: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  capacity: -32_000,
} as const

class RpcError extends Error {
  readonly code: number
  readonly data: JsonValue

  constructor(code: keyof typeof codes, message: string, data: JsonValue = null) {
    super(message)
    this.code = codes[code]
    this.data = data
  }
}

export interface RpcScope {
  readonly sessions: Sessions
  /** The socket's session; over HTTP a request names one, or gets one for itself alone. */
  readonly own?: Session
}

/** Answers one JSON-RPC request of the dialect that OpenEnv calls MCP: no `initialize`, and every notification is answered. */
export async function answerRpc(body: unknown, scope: RpcScope): Promise<JsonObject> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return failure(null, new RpcError('parse', 'Parse error'))
  const checked = requestSchema.safeParse(body)
  if (!checked.success) {
    const [issue] = checked.error.issues
    const message = `Invalid request: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`
    return failure(null, new RpcError('invalid', message))
  }
  const { method, params, id } = checked.data
  try {
    return { jsonrpc: '2.0', id, result: await carryOut(method, params, scope) }
  } catch (error) {
    return failure(id, error)
  }
}

/** What the text of a body means, when it is no JSON. */
export function unreadableRpc(): JsonObject {
  return failure(null, new RpcError('parse', 'Parse error'))
}

function failure(id: string | number | null, error: unknown): JsonObject {
  if (error instanceof RpcError) return rpcError(id, error.code, error.message, error.data)
  if (error instanceof CapacityError)
    return rpcError(id, codes.capacity, error.message, {
      active_sessions: error.active,
      max_sessions: error.most,
    })
  return rpcError(id, codes.internal, summarizeError(error).message, null)
}

function rpcError(
  id: string | number | null,
  code: number,
  message: string,
  data: JsonValue,
): JsonObject {
  return { jsonrpc: '2.0', id, error: { code, message, data } }
}

async function carryOut(method: string, params: JsonObject, scope: RpcScope): Promise<JsonObject> {
  const { sessions, own } = scope
  if (method === 'openenv/session/create')
    return { session_id: (own ?? (await sessions.open('http'))).id }
  if (method === 'openenv/session/close') {
    const id = params['session_id']
    if (typeof id !== 'string')
      throw new RpcError('params', "Invalid params - 'session_id' is required")
    const ended = await named(id, sessions).finish()
    return ended === 'closed'
      ? { session_id: id, closed: true }
      : { session_id: id, closed: false, closing: true }
  }
  if (method === 'tools/list')
    return await withSession(params, scope, async (session) => ({
      tools: (await toolList(session)).map(rpcTool),
    }))
  if (method === 'tools/call') return await callTool(params, scope)
  throw new RpcError('method', `Method not found: ${method}`)
}

async function callTool(params: JsonObject, scope: RpcScope): Promise<JsonObject> {
  const { name, arguments: args = {} } = params
  if (typeof name !== 'string') throw new RpcError('params', "Missing 'name' in params")
  if (!isJsonObject(args)) throw new RpcError('params', "'arguments' must be an object")
  return await withSession(params, scope, async (session, isAlone) => {
    if (isAlone) await session.run('a reset', (play, signal) => play.reset({}, signal))
    const action = { type: 'call_tool', tool_name: name, arguments: args } as const
    const { observation } = await act(session, action)
    const { error } = observation
    // An official client takes only JSON-RPC errors for a tool's failure.
    if (isJsonObject(error)) throw new RpcError('internal', error['message'] as string)
    return name === END_TURN && observation['result'] === undefined
      ? toolResult(JSON.stringify(observation))
      : (observation['result'] as JsonObject)
  })
}

async function withSession<T>(
  params: JsonObject,
  { sessions, own }: RpcScope,
  work: (session: Session, isAlone: boolean) => Promise<T>,
): Promise<T> {
  const id = params['session_id']
  if (own !== undefined) return await work(own, false)
  if (typeof id === 'string') return await work(named(id, sessions), false)
  const session = await sessions.open('http')
  try {
    return await work(session, true)
  } finally {
    await session.finish()
  }
}

function named(id: string, sessions: Sessions): Session {
  const session = sessions.find(id)
  if (session === undefined) throw new RpcError('params', `Unknown session_id: ${id}`)
  return session
}
