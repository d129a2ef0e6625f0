import { type JsonObject, summarizeError } from '@tiltyard/core'
import type { RawData, WebSocket } from 'ws'

import {
  actionSchema,
  errorFrame,
  frameSchema,
  frameTypes,
  observationFrame,
  validationErrors,
} from '../wire/frames.ts'
import { act } from './act.ts'
import { answerRpc, unreadableRpc } from './json-rpc.ts'
import type { Session, Sessions } from './sessions.ts'

export interface SocketScope {
  readonly session: Session
  readonly sessions: Sessions
  readonly nestedMetadata: boolean
}

/** Answers the frames of `/ws` in order, one each, until either side leaves. */
export function serveEpisodes(socket: WebSocket, scope: SocketScope): void {
  answerInOrder(socket, scope.session, async (text) => {
    let frame: unknown
    try {
      frame = JSON.parse(text)
    } catch {
      return errorFrame('INVALID_JSON', 'Invalid JSON')
    }
    if (typeof frame !== 'object' || frame === null || Array.isArray(frame)) {
      const told = errorFrame('SESSION_ERROR', 'a frame is a JSON object with a type')
      socket.send(JSON.stringify(told))
      return undefined
    }
    return await answerFrame(frame, scope)
  })
}

/** Answers JSON-RPC on `/mcp`, on the socket's own session. */
export function serveRpc(socket: WebSocket, { session, sessions }: SocketScope): void {
  answerInOrder(socket, session, async (text) => {
    let body: unknown
    try {
      body = JSON.parse(text)
    } catch {
      return unreadableRpc()
    }
    return await answerRpc(body, { sessions, own: session })
  })
}

/** `answer` gives undefined when the socket is to be closed. */
function answerInOrder(
  socket: WebSocket,
  session: Session,
  answer: (text: string) => Promise<JsonObject | undefined>,
): void {
  let tail = Promise.resolve()
  const leave = () => void session.detach()
  if (socket.readyState === socket.CLOSED) return leave()
  socket.on('close', leave)
  socket.on('error', () => socket.terminate())
  socket.on('message', (data) => {
    // One frame at a time: a client that doesn't wait for answers waits in its own socket.
    socket.pause()
    tail = after(tail, data)
  })

  async function after(before: Promise<void>, data: RawData): Promise<void> {
    await before
    const answered = await answer(textOf(data))
    if (answered === undefined) socket.close()
    else if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(answered))
    socket.resume()
  }
}

async function answerFrame(
  frame: object,
  { session, sessions, nestedMetadata }: SocketScope,
): Promise<JsonObject | undefined> {
  const type = 'type' in frame && typeof frame.type === 'string' ? frame.type : ''
  if (!frameTypes.includes(type)) return errorFrame('UNKNOWN_TYPE', `Unknown message type: ${type}`)
  const checked = frameSchema.safeParse(frame, { reportInput: true })
  if (!checked.success)
    return errorFrame('VALIDATION_ERROR', 'Invalid message', {
      errors: validationErrors(checked.error),
    })
  const read = checked.data
  if (read.type === 'close') return undefined
  try {
    if (read.type === 'mcp')
      return { type: 'mcp', data: await answerRpc(read.data, { sessions, own: session }) }
    if (read.type === 'state') {
      const data = await session.run('the state', (play) => Promise.resolve(play.state()))
      return { type: 'state', data }
    }
    if (read.type === 'reset') {
      const { data = {} } = read
      const first = await session.run('a reset', (play, signal) => play.reset(data, signal))
      return observationFrame(first, nestedMetadata)
    }
    const action = actionSchema.safeParse(read.data, { reportInput: true })
    if (!action.success)
      return errorFrame('VALIDATION_ERROR', 'Invalid message', {
        errors: validationErrors(action.error),
      })
    return observationFrame(await act(session, action.data), nestedMetadata)
  } catch (error) {
    return errorFrame('EXECUTION_ERROR', summarizeError(error).message)
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8')
  return Buffer.from(data as ArrayBuffer).toString('utf8')
}
