import { isIPv4 } from 'node:net'

import type { MiddlewareHandler } from 'hono'

import { problem } from './problems.ts'

/** Nothing but the page's own script, style and answers is let in. */
const securityHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
}

/**
 * Reads only, and only for this machine: a page elsewhere whose name was made to point here (DNS rebinding) comes with that name
 * as its host and is refused.
 */
export const guard: MiddlewareHandler = async (context, next) => {
  const { method } = context.req
  if (method !== 'GET' && method !== 'HEAD') {
    context.res = problem(405, 'METHOD', `${method} is refused: the explorer only reads`)
    context.res.headers.set('allow', 'GET, HEAD')
  } else if (!isLoopbackHost(context.req.header('host'))) {
    context.res = problem(403, 'HOST', 'open the explorer as localhost or 127.0.0.1')
  } else await next()
  for (const [name, value] of Object.entries(securityHeaders)) context.res.headers.set(name, value)
}

/** Whatever the port: a tunnel may end at another one. */
export function isLoopbackHost(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').toLowerCase()
  if (name === undefined) return false
  return name === 'localhost' || name === '[::1]' || (isIPv4(name) && name.startsWith('127.'))
}
