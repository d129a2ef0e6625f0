import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { JsonObject, JsonValue } from '@tiltyard/core'
import { type WebSocket, WebSocketServer } from 'ws'

export interface ScriptedServer {
  readonly url: string
  /** Frames that came, over all connections. */
  readonly frames: JsonObject[]
  readonly connections: number
  close(): Promise<void>
}

/** An environment server that answers each frame as it is told to; what the real one won't do on demand. */
export async function scriptedServer(
  schema: JsonObject,
  answer: (frame: JsonObject, socket: WebSocket, connection: number) => void,
  routes: Readonly<Record<string, JsonValue>> = {},
): Promise<ScriptedServer> {
  const frames: JsonObject[] = []
  let connections = 0
  const server = createServer((request, response) => {
    const found = request.url === '/schema' ? schema : routes[request.url ?? '']
    response.statusCode = found === undefined ? 404 : 200
    response.end(JSON.stringify(found ?? {}))
  })
  const sockets = new WebSocketServer({ server, path: '/ws' })
  sockets.on('connection', (socket) => {
    connections += 1
    const number = connections
    answer({ type: 'connect' }, socket, number)
    socket.on('message', (data) => {
      const frame = JSON.parse((data as Buffer).toString()) as JsonObject
      frames.push(frame)
      answer(frame, socket, number)
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    frames,
    get connections() {
      return connections
    },
    close: async () => {
      for (const socket of sockets.clients) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const send = (socket: WebSocket, data: JsonObject) =>
  socket.send(JSON.stringify({ type: 'observation', data }))
