import type { RunIndex } from '@tiltyard/core'
import { expect } from 'vitest'
import type { z } from 'zod'

import { explorerApp, type ExplorerAppOptions } from '../../src/server/app.ts'
import type { WebFile } from '../../src/server/web-files.ts'

const text = (body: string, type: string): WebFile => ({
  body: new TextEncoder().encode(body),
  type,
})

/** A page of two files in place of the built one. */
const files = new Map([
  ['/index.html', text('<title>page</title>', 'text/html; charset=utf-8')],
  ['/assets/page-1.js', text('run()', 'text/javascript; charset=utf-8')],
])

/** The explorer as a browser on this machine reaches it. */
export function explorer(index: RunIndex, options: Omit<ExplorerAppOptions, 'index'> = {}) {
  const app = explorerApp({ index, ...options }, files)
  const send = (path: string, init: { readonly method?: string; readonly host?: string } = {}) => {
    const { host = '127.0.0.1:4000', method = 'GET' } = init
    return app.request(path, { method, headers: { host } })
  }
  return {
    send,
    /** A good answer, checked against its schema: nothing more and nothing less. */
    ask: async <Schema extends z.ZodType>(
      path: string,
      query: Readonly<Record<string, string | number>>,
      schema: Schema,
    ): Promise<z.output<Schema>> => {
      const search = new URLSearchParams()
      for (const [name, value] of Object.entries(query)) search.set(name, String(value))
      const response = await send(`/api/${path}?${search.toString()}`)
      const body: unknown = await response.json()
      expect(body).not.toHaveProperty('error')
      return schema.parse(body)
    },
  }
}
