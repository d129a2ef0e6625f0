import type { AddressInfo } from 'node:net'

import { createAdaptorServer } from '@hono/node-server'
import { asError } from '@tiltyard/core'

import { createApp } from './app.ts'
import { createArchives } from './archives.ts'
import { createCheckpoints } from './checkpoints.ts'
import { createFutures } from './futures.ts'
import { createLedger } from './ledger.ts'
import { checkHost, checkServerOptions, type TinkerServerOptions } from './options.ts'
import { createSamplers } from './samplers.ts'
import { createSessions } from './sessions.ts'
import { createTraining } from './training.ts'

export interface ListenOptions {
  /** Default: any that is free. */
  readonly port?: number
  /** Default 127.0.0.1. Another needs keys. */
  readonly host?: string
}

export interface TinkerServer {
  /** Answers one request; for tests, and for whoever brings a server of their own. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Gives the base address for clients. @throws ConfigError when everybody on a network would be let in. */
  listen(options?: ListenOptions): Promise<string>
  /** Takes no more, lets what is under way finish within the grace, closes what it made of the backend. Idempotent. */
  close(): Promise<void>
}

const SWEEP_MS = 5_000
/** A client may ask for thousands of samples at once, on a connection each. Beyond this many the system lets some wait for seconds. */
const MAX_CONNECTING = 4_096
/** Longer than any pause of a client that will use its connection again. */
const KEEP_ALIVE_MS = 90_000
const LOOK_MS = 20

/** The Tinker protocol over a backend: what the official SDK, its cookbook and `tinkerBackend` talk to. */
export function tinkerServer(given: TinkerServerOptions): TinkerServer {
  const options = checkServerOptions(given)
  const { backend, clock, logger, limits } = options
  const sessions = createSessions(clock, logger, limits)
  const futures = createFutures(clock)
  const checkpoints = createCheckpoints(backend, createLedger(options.ledger, logger))
  const samplers = createSamplers({ options, backend, sessions, futures, checkpoints })
  const training = createTraining({ options, backend, sessions, samplers, futures, checkpoints })
  const archives = createArchives(backend, checkpoints, clock)
  const app = createApp({
    options,
    backend,
    sessions,
    samplers,
    training,
    futures,
    checkpoints,
    archives,
  })
  const stopped = new AbortController()
  const servers = new Set<ReturnType<typeof createAdaptorServer>>()
  let sweeping: Promise<void> | undefined
  let closing: Promise<void> | undefined

  const sweep = async () => {
    for (;;) {
      try {
        await clock.sleep(SWEEP_MS, stopped.signal)
      } catch {
        return
      }
      try {
        futures.sweep()
        archives.sweep()
        for (const { calls } of sessions.models()) calls.sweep()
        await sessions.sweep()
        await checkpoints.sweep()
      } catch (error) {
        logger.warn('tidying up failed; it is tried again', {
          error: error instanceof Error ? error.name : 'unknown',
        })
      }
    }
  }

  return {
    async fetch(request) {
      sweeping ??= sweep()
      return app.fetch(request)
    },
    async listen({ port = 0, host = '127.0.0.1' } = {}) {
      checkHost(host, options.keys)
      sweeping ??= sweep()
      const server = createAdaptorServer({ fetch: app.fetch })
      if ('keepAliveTimeout' in server) {
        server.keepAliveTimeout = KEEP_ALIVE_MS
        server.headersTimeout = KEEP_ALIVE_MS + 5_000
      }
      servers.add(server)
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, MAX_CONNECTING, () => {
          server.off('error', reject)
          resolve()
        })
      })
      const { port: bound } = server.address() as AddressInfo
      return `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
    },
    close() {
      closing ??= (async () => {
        const ended = [...servers].map(
          (server) => new Promise<void>((resolve) => void server.close(() => resolve())),
        )
        const until = clock.now() + limits.graceMs
        while (futures.pending > 0 && clock.now() < until) await clock.sleep(LOOK_MS)
        stopped.abort(asError('the server is closed'))
        await sweeping
        for (const { id } of sessions.all()) await sessions.finish(id)
        for (const server of servers)
          if ('closeAllConnections' in server) server.closeAllConnections()
        await Promise.all(ended)
      })()
      return closing
    },
  }
}
