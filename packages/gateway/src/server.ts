import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

import { createAdaptorServer, type HttpBindings, type Http2Bindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { ConfigError } from '@tiltyard/core'

import type { Gateway } from './gateway.ts'
import type { Answer } from './http/answer.ts'
import type { Client } from './http/client.ts'
import { isLoopback } from './identity.ts'

export interface ServeOptions {
  /** Default `127.0.0.1`. Other than loopback needs keys. */
  readonly host?: string
  /** Default 0: one that is free. */
  readonly port?: number
  /** How agents reach it, when that is not host and port: from a container, through a tunnel. */
  readonly advertise?: string
}

/** A socket that is open for a gateway. */
export interface GatewayServer {
  readonly host: string
  readonly port: number
  /** Ends connections; the gateway itself stays open. */
  close(): Promise<void>
}

/** How long a connection stays open between requests. Agents pause for tools; a connection that ends as they go on costs them a call. */
const IDLE_MS = 75_000
/** Agents connect in bursts, a whole batch of episodes at once. Beyond this many at a time the system lets some wait for seconds. */
const MAX_CONNECTING = 4_096

/**
 * Opens a socket for a gateway and sets its origin.
 * @throws ConfigError for an address that others reach, when no key is asked for.
 */
export async function serveGateway(
  gateway: Gateway,
  { host = '127.0.0.1', port = 0, advertise }: ServeOptions = {},
): Promise<GatewayServer> {
  if (gateway.needsNoKey && !isLoopback(host))
    throw new ConfigError('serveGateway', [
      {
        at: 'host',
        message: `"${host}" is reached by others, and this gateway asks for no key; listen on 127.0.0.1, or set requireKey and serving.key`,
      },
    ])
  const answer = async (request: Request, bindings: HttpBindings | Http2Bindings) => {
    const outgoing = bindings.outgoing as HttpBindings['outgoing']
    const given = await gateway.answer(request, clientOf(outgoing))
    if (given instanceof Response) return given
    await write(given, outgoing)
    return RESPONSE_ALREADY_SENT
  }
  const server = createAdaptorServer({
    fetch: answer,
    hostname: host,
    overrideGlobalObjects: false,
    serverOptions: { keepAliveTimeout: IDLE_MS },
  }) as Server
  server.listen({ host, port, backlog: MAX_CONNECTING })
  await once(server, 'listening')
  const bound = (server.address() as AddressInfo).port
  const shown = host.includes(':') ? `[${host}]` : host
  gateway.origin = advertise ?? `http://${shown}:${bound}`
  return {
    host,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A client is gone when its connection closes before the whole answer is on its way. */
function clientOf(outgoing: HttpBindings['outgoing']): Client {
  return {
    get gone() {
      return outgoing.destroyed && !outgoing.writableFinished
    },
    onGone(listener) {
      const closed = () => {
        if (!outgoing.writableFinished) listener()
      }
      outgoing.once('close', closed)
      return () => outgoing.off('close', closed)
    },
  }
}

/** Writes an answer as fast as its client takes it. One that fails on its way breaks its connection, so that no client takes it for a whole one. */
async function write(
  { status, headers, body }: Answer,
  outgoing: HttpBindings['outgoing'],
): Promise<void> {
  if (typeof body === 'string') {
    outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
    return
  }
  outgoing.writeHead(status, headers)
  try {
    for (let text = await body.next(); text !== undefined; text = await body.next())
      if (!outgoing.write(text)) await drained(outgoing)
    outgoing.end()
  } catch {
    // What was written in this turn of the event loop is only now on its way.
    setImmediate(() => outgoing.destroy())
  }
}

/** Resolves when more can be written, or nothing ever will. */
function drained(outgoing: HttpBindings['outgoing']): Promise<void> {
  return new Promise((resolve) => {
    if (outgoing.destroyed) resolve()
    const done = () => {
      outgoing.off('drain', done).off('close', done)
      resolve()
    }
    outgoing.on('drain', done).on('close', done)
  })
}
