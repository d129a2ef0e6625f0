import { readFile } from 'node:fs/promises'

import type { Hono } from 'hono'

const files = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/chat.js': ['chat.js', 'text/javascript; charset=utf-8'],
  '/chat.css': ['chat.css', 'text/css; charset=utf-8'],
} as const

/** Nothing but the page's own script, style and answers is let in; replies are shown as text. */
const headers = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/** The page to talk to the policies. */
export function pageRoutes(app: Hono): void {
  for (const [path, [name, type]] of Object.entries(files))
    app.get(path, async () => {
      const body = await readPageFile(name)
      return new Response(body, { headers: { ...headers, 'content-type': type } })
    })
}

/** The package's `page` folder lies beside `dist`, and two levels above this source. */
async function readPageFile(name: string): Promise<string> {
  const read = (folder: string) => readFile(new URL(`${folder}/${name}`, import.meta.url), 'utf8')
  return read('../page').catch(() => read('../../page'))
}
