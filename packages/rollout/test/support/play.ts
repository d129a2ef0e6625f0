import type { GroupKey, Renderer, Sampler } from '@tiltyard/core'
import {
  charRenderer,
  scriptedSampler,
  simulatedClock,
  type ScriptedReply,
  type SimulatedClock,
} from '@tiltyard/testkit'

import { createSlots, playGroup, type RolloutOptions } from '../../src/index.ts'

export const groupKey: GroupKey = { split: 'train', step: 7, group: 3 }

/** Options of a rollout on a simulated clock. Every reply is `done` unless a script or a sampler is given. */
export function rollout(
  options: Partial<RolloutOptions> & {
    readonly replies?: Parameters<typeof scriptedSampler>[0]
    readonly sampler?: Sampler
    readonly renderer?: Renderer
    readonly slotCount?: number
  } = {},
): RolloutOptions & { readonly clock: SimulatedClock } {
  const { replies = ['done'], renderer = charRenderer(), slotCount = 4, ...rest } = options
  const { sampler = scriptedSampler(replies), ...given } = rest
  return {
    seed: 11,
    policy: { sampler, renderer, sampling: {} },
    slots: createSlots(slotCount),
    wallClock: () => 1_000_000,
    ...given,
    clock: (given.clock as SimulatedClock | undefined) ?? simulatedClock(),
  }
}

export type { ScriptedReply }
export { playGroup }
