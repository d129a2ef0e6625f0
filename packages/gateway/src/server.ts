import { serve, type HttpBindings, type Http2Bindings } from '@hono/node-server'
import { ConfigError } from '@tiltyard/core'

import type { Gateway } from './gateway.ts'
import { unbuffered } from './http/event-stream.ts'
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
  const answer = async (request: Request, { outgoing }: Connection) =>
    breaking(await gateway.fetch(request), outgoing)
  const { server, bound } = await new Promise<{ server: ReturnType<typeof serve>; bound: number }>(
    (resolve, reject) => {
      const made = serve(
        { fetch: answer, hostname: host, port, overrideGlobalObjects: false },
        (info) => resolve({ server: made, bound: info.port }),
      )
      made.once('error', reject)
    },
  )
  const shown = host.includes(':') ? `[${host}]` : host
  gateway.origin = advertise ?? `http://${shown}:${bound}`
  return {
    host,
    port: bound,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}

type Connection = HttpBindings | Http2Bindings

/**
 * An answer in pieces whose failure breaks its connection, so that no client takes it for a whole one. The server's own way
 * would write the error's text, end the answer and print the error.
 */
function breaking(response: Response, outgoing: Connection['outgoing']): Response {
  const [header] = Object.keys(unbuffered)
  if (response.body === null || !response.headers.has(header!)) return response
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch {
          outgoing.destroy()
          controller.close()
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return new Response(body, { status: response.status, headers: response.headers })
}
