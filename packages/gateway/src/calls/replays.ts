import { hash } from 'node:crypto'

import type { ActiveCall } from './call.ts'

/** What tells a client's second try from a new question. */
export interface TryMarks {
  /** Hash of route, tags and body, or the client's own idempotency key. */
  readonly digest: string
  /** Whether the client says that it tries again. */
  readonly marked: boolean
}

/** Calls of an attempt that a client may come back for. */
export interface Replays {
  /**
   * The call that this request is another try of. Orphans come first: those whose client left before the end. Then, only if the
   * client says that it tries again, a call under way, then the newest that was delivered. Otherwise it is a new call.
   */
  find(marks: TryMarks): ActiveCall | undefined
  add(marks: TryMarks, call: ActiveCall): void
}

const MAX_REPLAYS = 10
const MAX_REMEMBERED = 64

export function createReplays(): Replays {
  const byDigest = new Map<string, ActiveCall[]>()
  const order: { readonly digest: string; readonly call: ActiveCall }[] = []
  return {
    find({ digest, marked }) {
      const calls = (byDigest.get(digest) ?? []).filter(
        ({ state, record }) => state() !== 'failed' && record.replayed < MAX_REPLAYS,
      )
      const orphan = calls.find(({ state }) => state() === 'orphaned')
      if (orphan !== undefined || !marked) return orphan
      return calls.find(({ state }) => state() === 'running') ?? calls.at(-1)
    },
    add({ digest }, call) {
      byDigest.set(digest, [...(byDigest.get(digest) ?? []), call])
      order.push({ digest, call })
      if (order.length <= MAX_REMEMBERED) return
      const oldest = order.shift()!
      const rest = byDigest.get(oldest.digest)!.filter((kept) => kept !== oldest.call)
      if (rest.length === 0) byDigest.delete(oldest.digest)
      else byDigest.set(oldest.digest, rest)
    },
  }
}

/** Reads the marks of a request. `tags` and `route` keep calls apart whose bodies are equal. */
export function tryMarks(headers: Headers, route: string, tags: object, body: string): TryMarks {
  const idempotency = headers.get('idempotency-key')
  const what = idempotency === null ? `b${body}` : `k${idempotency}`
  const digest = hash('sha256', `${route}\u0000${JSON.stringify(tags)}\u0000${what}`, 'base64')
  const retries = Number(headers.get('x-stainless-retry-count') ?? 0)
  return { digest, marked: idempotency !== null || retries > 0 }
}
