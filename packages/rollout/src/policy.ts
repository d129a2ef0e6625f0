import type { PolicyHandle } from '@tiltyard/core'

import type { PolicyLease, PolicySource } from './options.ts'

/** The policy of now, for a trainer that moves it while episodes are under way. Each episode keeps the one that it began with. */
export interface PolicyPointer {
  readonly current: PolicyHandle
  /** Give `() => pointer.take()` as a rollout's policy. */
  take(): PolicyLease
  /** Makes `next` the policy of now. Resolves when no episode uses the former one any more and it was let go. */
  move(next: PolicyHandle): Promise<void>
}

/** `letGo` is called with a policy that is neither current nor used any more. Default: its sampler is closed. */
export function createPolicyPointer(
  first: PolicyHandle,
  letGo: (policy: PolicyHandle) => Promise<void> = ({ sampler }) => sampler.close(),
): PolicyPointer {
  let users = countUsers(first)
  return {
    get current() {
      return users.policy
    },
    take: () => users.take(),
    async move(next) {
      const former = users
      users = countUsers(next)
      await former.unused()
      await letGo(former.policy)
    },
  }
}

function countUsers(policy: PolicyHandle) {
  let count = 0
  let whenUnused: (() => void) | undefined
  return {
    policy,
    take(): PolicyLease {
      count += 1
      let held = true
      return {
        policy,
        release() {
          if (!held) return
          held = false
          count -= 1
          if (count === 0) whenUnused?.()
        },
      }
    },
    unused(): Promise<void> {
      if (count === 0) return Promise.resolve()
      return new Promise((resolve) => {
        whenUnused = resolve
      })
    },
  }
}

/** The policy for an episode that begins now. */
export function takePolicy(source: PolicySource): PolicyLease {
  if (typeof source === 'function') return source()
  return { policy: source, release() {} }
}
