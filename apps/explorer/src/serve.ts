import { serve } from '@hono/node-server'

import { explorerApp, type ExplorerAppOptions } from './server/app.ts'
import { readWebFiles } from './server/web-files.ts'

/** What an explorer shows, and where. */
export interface ExplorerOptions extends ExplorerAppOptions {
  /** Default 0: one that is free. */
  readonly port?: number
}

/** An explorer that listens. */
export interface Explorer {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  /** Ends its connections. The index stays open. */
  close(): Promise<void>
}

/**
 * Opens the explorer on this machine's loopback address, where nobody else reaches it. It only reads: credentials that may read
 * and list are enough for its index.
 * @throws Error when the port is taken, or the package lacks its page.
 */
export async function serveExplorer({ port = 0, ...options }: ExplorerOptions): Promise<Explorer> {
  const app = explorerApp(options, await readWebFiles())
  const { server, bound } = await new Promise<{ server: ReturnType<typeof serve>; bound: number }>(
    (resolve, reject) => {
      const made = serve(
        { fetch: app.fetch, hostname: '127.0.0.1', port, overrideGlobalObjects: false },
        (info) => resolve({ server: made, bound: info.port }),
      )
      made.once('error', reject)
    },
  )
  return {
    url: `http://127.0.0.1:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}
