import { serve } from '@hono/node-server'
import { ConfigError } from '@tiltyard/core'

import type { Gateway } from './gateway.ts'
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
  const { server, bound } = await new Promise<{ server: ReturnType<typeof serve>; bound: number }>(
    (resolve, reject) => {
      const made = serve(
        { fetch: (request) => gateway.fetch(request), hostname: host, port },
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
