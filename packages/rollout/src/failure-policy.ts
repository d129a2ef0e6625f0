import { ConfigError } from '@tiltyard/core'

/**
 * What a failed episode does to its group. Failed means broken by environment, service or record; it never has a reward.
 * `failFast`: the first failure cancels the group, and `playGroup` rejects with it.
 * `retry`: a failed member is played again as long as the group has retries left (default 3); then the rest is cancelled and the group dropped.
 * `minGroup`: a failed member is played again only while the group has fewer members than `atLeast` (default `viableSize`) and
 * retries are left (default 0); the others are played to their end, and the group is dropped when it stays below `atLeast`.
 */
export type FailurePolicy =
  | { readonly kind: 'failFast' }
  | { readonly kind: 'retry'; readonly retries?: number }
  | { readonly kind: 'minGroup'; readonly atLeast?: number; readonly retries?: number }

export const DEFAULT_RETRIES = 3

/** Members that a group of `size` needs by default: ⌈¾ · size⌉. */
export function viableSize(size: number): number {
  return Math.ceil(0.75 * size)
}

/** A number of retries that several groups share. */
export interface RetryBudget {
  readonly left: number
  /** Takes one; false when none is left. */
  take(): boolean
}

/** @throws ConfigError when `retries` is no whole number of at least 0. */
export function createRetryBudget(retries: number): RetryBudget {
  if (!Number.isInteger(retries) || retries < 0) {
    throw new ConfigError('retry budget', [
      { at: 'retries', message: `expected a whole number of at least 0, got ${retries}` },
    ])
  }
  let left = retries
  return {
    get left() {
      return left
    },
    take() {
      if (left === 0) return false
      left -= 1
      return true
    },
  }
}

/** A failure policy at work in one group. */
export interface RetryPolicy {
  /** A member is done. */
  succeeded(): void
  /** Whether a member that failed just now is played again; takes a retry if so. */
  take(): boolean
  /** Why a group with so many members is dropped; undefined when it isn't. */
  verdict(members: number): string | undefined
}

export function createRetryPolicy(
  policy: FailurePolicy,
  size: number,
  shared: RetryBudget | undefined,
): RetryPolicy {
  const floor = policy.kind === 'minGroup' ? (policy.atLeast ?? viableSize(size)) : size
  const given = { failFast: 0, retry: DEFAULT_RETRIES, minGroup: 0 }[policy.kind]
  let left = 'retries' in policy ? (policy.retries ?? given) : given
  let members = 0
  return {
    succeeded() {
      members += 1
    },
    take() {
      if (left === 0 || members >= floor) return false
      if (shared !== undefined && !shared.take()) return false
      left -= 1
      return true
    },
    verdict(count) {
      if (count >= floor) return undefined
      return `${count} of ${size} members, and at least ${floor} are needed`
    },
  }
}
