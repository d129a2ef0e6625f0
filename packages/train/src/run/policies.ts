import type { Logger, PolicyHandle, Renderer, Sampler, SamplingSettings } from '@tiltyard/core'
import { createPolicyPointer, type PolicyLease, type PolicyPointer } from '@tiltyard/rollout'

/** The weights that sample, and how many steps they have seen. */
export interface Policies {
  /** Steps that the newest weights have seen; a step without an update counts too. */
  readonly version: number
  readonly sampler: Sampler
  take(): PolicyLease
  /** From now on episodes begin with this sampler; those under way keep theirs, which is closed after the last of them. */
  move(sampler: Sampler, version: number): void
  /** The step had no update: the same weights are now those of a later step. */
  keep(version: number): void
  /** Closes the samplers. */
  close(): Promise<void>
}

export function createPolicies(
  first: Sampler,
  version: number,
  options: {
    readonly renderer: Renderer
    readonly sampling: SamplingSettings
    readonly logger: Logger
  },
): Policies {
  const handle = (sampler: Sampler): PolicyHandle => ({
    sampler,
    renderer: options.renderer,
    sampling: options.sampling,
  })
  const pointer: PolicyPointer = createPolicyPointer(handle(first))
  let current = version
  return {
    get version() {
      return current
    },
    get sampler() {
      return pointer.current.sampler
    },
    take: () => pointer.take(),
    move(sampler, next) {
      current = next
      pointer.move(handle(sampler)).catch((error: unknown) => {
        options.logger.warn('an old sampler was not closed', { error: String(error) })
      })
    },
    keep(next) {
      current = next
    },
    close: () => pointer.current.sampler.close(),
  }
}
