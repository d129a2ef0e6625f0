import { StateError } from '@tiltyard/core'

import type { OpenAttempt } from './attempt.ts'
import { attributionMismatch, invalidKey, rolloutClosed } from './errors.ts'
import type { Place } from './identity.ts'
import { keyDigest, keyOf } from './keys.ts'

/** Attempts by key and by name. Of ended ones only the digest of the key stays, so that their callers learn that it is over. */
export interface Registry {
  add(attempt: OpenAttempt): void
  remove(attempt: OpenAttempt): void
  readonly open: readonly OpenAttempt[]
  /** Whose request this is: the key decides, the path must agree. Undefined: it brings no key. @throws ApiError */
  find(headers: Headers, place: Place): OpenAttempt | undefined
  /** By path alone. */
  named(place: Place): OpenAttempt | undefined
}

const MAX_ENDED = 100_000

export function createRegistry(): Registry {
  const byKey = new Map<string, OpenAttempt>()
  const byName = new Map<string, OpenAttempt>()
  const ended = new Set<string>()
  return {
    add(attempt) {
      const name = nameOf(attempt.rollout, attempt.attempt)
      if (byName.has(name))
        throw new StateError(`attempt ${attempt.attempt} of rollout "${attempt.rollout}" is open`)
      byName.set(name, attempt)
      byKey.set(keyDigest(attempt.key), attempt)
    },
    remove(attempt) {
      const digest = keyDigest(attempt.key)
      byName.delete(nameOf(attempt.rollout, attempt.attempt))
      byKey.delete(digest)
      ended.add(digest)
      if (ended.size > MAX_ENDED) ended.delete(ended.values().next().value!)
    },
    get open() {
      return [...byKey.values()]
    },
    find(headers, { rollout, attempt }) {
      const key = keyOf(headers)
      if (key === undefined) return undefined
      const digest = keyDigest(key)
      const found = byKey.get(digest)
      if (found === undefined) throw ended.has(digest) ? rolloutClosed() : invalidKey()
      const agrees =
        (rollout === undefined || rollout === found.rollout) &&
        (attempt === undefined || attempt === found.attempt)
      if (!agrees) throw attributionMismatch()
      return found
    },
    named({ rollout, attempt }) {
      if (rollout === undefined || attempt === undefined) return undefined
      return byName.get(nameOf(rollout, attempt))
    },
  }
}

function nameOf(rollout: string, attempt: string): string {
  return `${rollout}\u0000${attempt}`
}
