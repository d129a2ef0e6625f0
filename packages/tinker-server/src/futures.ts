import type { Clock } from '@tiltyard/core'

import { failureOf, type Failure } from './refusal.ts'
import type { TypedResult } from './wire/results.ts'

/** What an operation gave: JSON as it is, or a result that has two forms. */
type Outcome =
  | { readonly kind: 'json'; readonly value: object }
  | { readonly kind: 'typed'; readonly value: TypedResult }
  | { readonly kind: 'failed'; readonly value: Failure }

type Polled = { readonly kind: 'pending' } | { readonly kind: 'unknown' } | Outcome

/** Results of operations by request id. Kept for a while after they were fetched: an answer may get lost. */
export interface Futures {
  /** Gives the id at once; the operation's result, or its failure, is fetched under it. */
  add(work: Promise<object | TypedResult>, owner: string, cancel?: () => void): string
  /** Waits so long for a result. Any number may ask for it, before and after. */
  poll(id: string, holdMs: number, signal: AbortSignal): Promise<Polled>
  /** Nobody waits for it any more. */
  cancel(id: string): void
  /** Drops what was fetched long ago, and what nobody ever fetched. */
  sweep(): void
  /** Operations that are not done. */
  readonly pending: number
}

/** After the first fetch, in milliseconds. */
const KEPT_MS = 300_000
/** Never fetched. */
const FORGOTTEN_MS = 3_600_000

interface Entry {
  readonly done: Promise<void>
  readonly cancel: (() => void) | undefined
  outcome: Outcome | undefined
  /** When it is dropped. */
  expires: number
}

export function createFutures(clock: Clock): Futures {
  const entries = new Map<string, Entry>()
  let pending = 0

  return {
    add(work, owner, cancel) {
      const id = `${owner}:${crypto.randomUUID()}`
      pending += 1
      const settle = (outcome: Outcome) => {
        pending -= 1
        entry.outcome = outcome
        entry.expires = clock.now() + FORGOTTEN_MS
      }
      const entry: Entry = {
        outcome: undefined,
        expires: Number.POSITIVE_INFINITY,
        cancel,
        done: work
          .then(
            (value): Outcome =>
              'protobuf' in value ? { kind: 'typed', value } : { kind: 'json', value },
            (error: unknown): Outcome => ({ kind: 'failed', value: failureOf(error) }),
          )
          .then(settle),
      }
      entries.set(id, entry)
      return id
    },
    async poll(id, holdMs, signal) {
      const entry = entries.get(id)
      if (entry === undefined) return { kind: 'unknown' }
      if (entry.outcome === undefined) {
        const over = new AbortController()
        const end = AbortSignal.any([over.signal, signal])
        await Promise.race([entry.done, clock.sleep(holdMs, end).catch(() => {})])
        over.abort()
      }
      if (entry.outcome === undefined) return { kind: 'pending' }
      entry.expires = Math.min(entry.expires, clock.now() + KEPT_MS)
      return entry.outcome
    },
    cancel(id) {
      entries.get(id)?.cancel?.()
    },
    sweep() {
      const now = clock.now()
      for (const [id, { expires }] of entries) if (expires <= now) entries.delete(id)
    },
    get pending() {
      return pending
    },
  }
}
