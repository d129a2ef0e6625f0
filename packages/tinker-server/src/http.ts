import { createHash, timingSafeEqual } from 'node:crypto'

import { TiltyardError } from '@tiltyard/core'
import type { Context } from 'hono'

import { Refusal, failureOf } from './refusal.ts'
import { readJson } from './wire/json-requests.ts'

const PREFIX = '/api/v1'

/** The path from `/api/v1` on, as it was sent: ids hold colons, and nothing of them is decoded. */
export function pathOf(request: Request): string {
  const { pathname } = new URL(request.url)
  const begin = pathname.indexOf(`${PREFIX}/`)
  return begin === -1 ? pathname : pathname.slice(begin + PREFIX.length)
}

/** All that stands before that path, the prefix included: where this server is for whoever sent the request, or as it is advertised. */
export function baseOf(request: Request, advertise: string | undefined): string {
  if (advertise !== undefined) return advertise + PREFIX
  const { origin, pathname } = new URL(request.url)
  return origin + pathname.slice(0, pathname.indexOf(`${PREFIX}/`) + PREFIX.length)
}

export function credentialOf(context: Context): string {
  const bearer = context.req.header('authorization')?.replace(/^Bearer /i, '')
  return context.req.header('x-api-key') ?? bearer ?? ''
}

/** Compares hashes, so that the time it takes says nothing about a key. */
export function isKnown(given: string, keys: readonly string[]): boolean {
  const wanted = hash(given)
  return keys.map((key) => timingSafeEqual(hash(key), wanted)).includes(true)
}

export function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64')
}

export async function jsonOf(context: Context, most: number): Promise<unknown> {
  return parse(await bytesOfBody(context, most))
}

export function parse(bytes: Uint8Array): unknown {
  try {
    return readJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new Refusal(400, 'the body is no JSON')
  }
}

export async function bytesOfBody(context: Context, most: number): Promise<Uint8Array> {
  const encoding = context.req.header('content-encoding') ?? 'identity'
  if (encoding !== 'identity')
    throw new Refusal(415, `bodies are taken as they are, not as ${encoding.slice(0, 20)}`)
  const tooLong = () => new Refusal(413, `a body has at most ${most} bytes here`)
  if (Number(context.req.header('content-length') ?? 0) > most) throw tooLong()
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of context.req.raw.body ?? []) {
    length += part.length
    if (length > most) throw tooLong()
    parts.push(part)
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
}

/** Every answer tells its length: clients take one that doesn't for a proxy's. */
export function respond(
  body: string | Uint8Array<ArrayBuffer>,
  type: string,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  return new Response(bytes, {
    status,
    headers: { 'content-type': type, 'content-length': String(bytes.length), ...headers },
  })
}

export function json(value: object, status = 200): Response {
  return respond(JSON.stringify(value), 'application/json', status)
}

export function nothing(): Response {
  return new Response(null, { status: 204 })
}

export function statusOf(error: unknown): number {
  if (error instanceof Refusal) return error.status
  if (TiltyardError.is(error, 'NOT_FOUND')) return 404
  if (error instanceof RangeError) return 400
  return failureOf(error).category === 'user' ? 400 : 500
}

export function failed(error: unknown): Response {
  const status = statusOf(error)
  const said = error instanceof RangeError ? `the body can't be read: ${error.message}` : undefined
  return json({ detail: said ?? failureOf(error).error }, status)
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
