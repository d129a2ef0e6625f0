import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

import { createAdaptorServer } from '@hono/node-server'
import { ConfigError, type PlayNeeds } from '@tiltyard/core'
import { type WebSocket, WebSocketServer } from 'ws'

import { errorFrame, MAX_FRAME_BYTES } from '../wire/frames.ts'
import { RESERVED_NAMES } from '../wire/tools.ts'
import { isForeignPage, isLetIn } from './admission.ts'
import { createApp } from './app.ts'
import { checkHost, checkServerOptions, type OpenEnvServerOptions } from './options.ts'
import { createPlay } from './play.ts'
import { CapacityError, createSessions, type Session } from './sessions.ts'
import { serveEpisodes, serveRpc } from './socket.ts'
import { createTaskTable } from './tasks.ts'

export interface ListenOptions {
  /** Default: any that is free. */
  readonly port?: number
  /** Default 127.0.0.1. Another needs keys. */
  readonly host?: string
}

export interface OpenEnvServer {
  /** Answers one HTTP request; the sockets need `listen`. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Sessions that are open. */
  readonly activeSessions: number
  /** Gives the base address for clients. @throws ConfigError when everybody on a network would be let in. */
  listen(options?: ListenOptions): Promise<string>
  /** Ends all episodes as cancelled, and all connections. Idempotent. */
  close(): Promise<void>
}

/** A socket that hasn't answered a ping by the next one is dead. */
const PING_MS = 20_000

/** What an OpenEnv client can be shown; a source refuses tasks that need more. */
const needs: PlayNeeds = { tools: true, images: false, changedHead: true }

/**
 * A source's tasks as an OpenEnv environment: what the official clients, and trainers that use them, play. Tools are called by
 * `call_tool`; `end_turn` gives the reply that ends a turn, and the last one brings the reward.
 * @throws ConfigError for wrong options, and for a rule that can't decide between the source's steps.
 */
export function openenvServer(given: OpenEnvServerOptions): OpenEnvServer {
  const options = checkServerOptions(given)
  const { source, limits, clock, logger, keys, nestedMetadata } = options
  const tasks = createTaskTable(source, options.splits)
  let preparing: Promise<void> | undefined
  const prepare = (signal: AbortSignal) => (preparing ??= source.prepare(needs, signal))
  const sessions = createSessions({
    createPlay: () => createPlay({ options, tasks, prepare }),
    limits,
    clock,
    logger,
  })
  const app = createApp({ options, sessions, tasks })
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_FRAME_BYTES,
    perMessageDeflate: false,
  })
  const servers = new Set<Server>()
  const alive = new WeakSet<WebSocket>()
  let beating: NodeJS.Timeout | undefined
  let closing: Promise<void> | undefined

  const beat = () => {
    void sessions.sweep()
    for (const socket of sockets.clients) {
      if (!alive.delete(socket)) socket.terminate()
      else socket.ping()
    }
  }

  const accept = async (socket: WebSocket, path: string, wanted: string | null) => {
    alive.add(socket)
    socket.on('pong', () => alive.add(socket))
    socket.pause()
    const taken = await takeSession(wanted)
    socket.resume()
    if ('refusal' in taken) {
      socket.send(JSON.stringify(taken.refusal))
      socket.close()
      return
    }
    const scope = { session: taken.session, sessions, nestedMetadata }
    if (path === '/mcp') serveRpc(socket, scope)
    else serveEpisodes(socket, scope)
  }

  const takeSession = async (
    wanted: string | null,
  ): Promise<
    { readonly session: Session } | { readonly refusal: ReturnType<typeof errorFrame> }
  > => {
    if (wanted !== null) {
      const session = sessions.find(wanted)
      if (session === undefined)
        return { refusal: errorFrame('SESSION_ERROR', `Unknown session_id: ${wanted}`) }
      return session.attach()
        ? { session }
        : {
            refusal: errorFrame(
              'SESSION_ERROR',
              `session ${wanted} already has an attached WebSocket`,
            ),
          }
    }
    try {
      return { session: await sessions.open('socket') }
    } catch (error) {
      if (!(error instanceof CapacityError)) throw error
      return {
        refusal: errorFrame('CAPACITY_REACHED', error.message, {
          active_sessions: error.active,
          max_sessions: error.most,
        }),
      }
    }
  }

  const upgrade = (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const { authorization, origin, host } = request.headers
    const status = !['/ws', '/mcp'].includes(pathname)
      ? '404 Not Found'
      : isForeignPage(origin, host)
        ? '403 Forbidden'
        : isLetIn(authorization, keys)
          ? undefined
          : '401 Unauthorized'
    if (status !== undefined) {
      stream.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      void accept(socket, pathname, searchParams.get('session_id'))
    })
  }

  return {
    fetch: async (request) => await app.fetch(request),
    get activeSessions() {
      return sessions.active
    },
    async listen({ port = 0, host = '127.0.0.1' } = {}) {
      checkHost(host, keys)
      await checkTools()
      const server = createAdaptorServer({ fetch: app.fetch }) as Server
      server.on('upgrade', upgrade)
      servers.add(server)
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve()
        })
      })
      beating ??= setInterval(beat, PING_MS).unref()
      const { port: bound } = server.address() as AddressInfo
      return `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
    },
    close() {
      closing ??= (async () => {
        clearInterval(beating)
        await sessions.close()
        for (const socket of sockets.clients) socket.terminate()
        const ended = [...servers].map(
          (server) => new Promise<void>((resolve) => void server.close(() => resolve())),
        )
        for (const server of servers) server.closeAllConnections()
        await Promise.all(ended)
      })()
      return closing
    },
  }

  /** @throws ConfigError naming tools that have a name of the protocol's own. */
  async function checkTools(): Promise<void> {
    const { signal } = new AbortController()
    const tools = await createPlay({ options, tasks, prepare }).tools(signal)
    const taken = tools.filter(({ name }) => RESERVED_NAMES.has(name))
    if (taken.length > 0)
      throw new ConfigError(
        'openenvServer',
        taken.map(({ name }) => ({
          at: `tool "${name}"`,
          message: `OpenEnv has a verb of that name; rename the tool`,
        })),
      )
  }
}
