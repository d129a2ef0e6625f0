import type { AttemptOptions, OpenAttempt } from './attempt.ts'
import { OWN_ALIAS } from './attempt.ts'
import { keyDigest, keyOf } from './keys.ts'
import type { Policies } from './policies.ts'

/** Calls of no attempt: whoever holds the key, or anybody, talks to the published policies with settings of their own. */
export interface Serving {
  /** Where this request belongs; undefined when it brings another key. */
  find(headers: Headers): OpenAttempt | undefined
  close(): Promise<void>
}

/** What was said is forgotten after so many calls or messages, or when something broke. */
const MAX_CALLS = 1_000
const MAX_NODES = 20_000

export function createServing(
  { key }: { readonly key?: string | undefined },
  open: (options: AttemptOptions, closed: (attempt: OpenAttempt) => void) => OpenAttempt,
  policies: Policies,
): Serving {
  const digest = key === undefined ? undefined : keyDigest(key)
  const alive = new Set<OpenAttempt>()
  const begin = () => {
    const alias = policies.has(OWN_ALIAS) ? OWN_ALIAS : (policies.aliases()[0] ?? OWN_ALIAS)
    const attempt = open(
      {
        rollout: 'serving',
        policy: { alias, mode: 'latest' },
        sampling: 'respect',
        trains: () => false,
      },
      (closed) => alive.delete(closed),
    )
    alive.add(attempt)
    return attempt
  }
  let current: OpenAttempt | undefined
  return {
    find(headers) {
      if (digest !== undefined && keyDigest(keyOf(headers) ?? '') !== digest) return undefined
      const isOver =
        current !== undefined &&
        (current.broken !== undefined ||
          current.calls.length >= MAX_CALLS ||
          current.graph.nodes >= MAX_NODES)
      if (isOver) alive.delete(current!)
      if (current === undefined || isOver) current = begin()
      return current
    },
    async close() {
      await Promise.all([...alive].map((attempt) => attempt.close()))
    },
  }
}
