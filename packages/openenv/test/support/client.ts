import type { JsonObject } from '@tiltyard/core'
import { WebSocket } from 'ws'

/** A socket that is told what to send, and gives what came back. */
export interface RawClient {
  readonly socket: WebSocket
  send(frame: unknown): void
  next(): Promise<JsonObject>
  ask(frame: unknown): Promise<JsonObject>
  readonly closed: Promise<number>
}

export async function rawClient(
  base: string,
  path = '/ws',
  headers: Readonly<Record<string, string>> = {},
): Promise<RawClient> {
  const socket = new WebSocket(`${base.replace('http', 'ws')}${path}`, { headers })
  const answers: JsonObject[] = []
  const waiting: ((answer: JsonObject) => void)[] = []
  socket.on('message', (data) => {
    const answer = JSON.parse((data as Buffer).toString()) as JsonObject
    const waiter = waiting.shift()
    if (waiter === undefined) answers.push(answer)
    else waiter(answer)
  })
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
  })
  const send = (frame: unknown) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  const next = () =>
    new Promise<JsonObject>((resolve) => {
      const held = answers.shift()
      if (held === undefined) waiting.push(resolve)
      else resolve(held)
    })
  return {
    socket,
    send,
    next,
    ask: (frame) => {
      send(frame)
      return next()
    },
    closed,
  }
}
