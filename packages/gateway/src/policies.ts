import { NotFoundError, type PolicyHandle } from '@tiltyard/core'

/** A policy in use. */
export interface Lease {
  readonly policy: PolicyHandle
  release(): void
}

/** Policies by alias. A call keeps what it took; a newer policy changes none that is under way. */
export interface Policies {
  /** Moves the alias to this policy. `released` is called once, when the alias has moved on and the last user is done. */
  publish(alias: string, policy: PolicyHandle, released?: () => void): void
  /** @throws NotFoundError naming the aliases that exist. */
  take(alias: string): Lease
  has(alias: string): boolean
  aliases(): readonly string[]
}

interface Published {
  readonly policy: PolicyHandle
  readonly released: (() => void) | undefined
  users: number
  current: boolean
}

export function createPolicies(): Policies {
  const published = new Map<string, Published>()
  const settle = (entry: Published) => {
    if (!entry.current && entry.users === 0) entry.released?.()
  }
  return {
    publish(alias, policy, released) {
      const before = published.get(alias)
      published.set(alias, { policy, released, users: 0, current: true })
      if (before === undefined) return
      before.current = false
      settle(before)
    },
    take(alias) {
      const entry = published.get(alias)
      if (entry === undefined)
        throw new NotFoundError(
          `no policy "${alias}"; there is ${[...published.keys()].join(', ') || 'none'}`,
        )
      entry.users += 1
      let held = true
      return {
        policy: entry.policy,
        release() {
          if (!held) return
          held = false
          entry.users -= 1
          settle(entry)
        },
      }
    },
    has: (alias) => published.has(alias),
    aliases: () => [...published.keys()],
  }
}
