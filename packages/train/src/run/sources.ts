import type { GroupPlan, Renderer, TaskSource } from '@tiltyard/core'
import { playNeeds } from '@tiltyard/rollout'

/**
 * Readies what plans are played with: each source once, and each reward rule against the steps that its source records.
 * @throws ConfigError listing the tasks that can't be played, or what a rule lacks.
 */
export function createPreparation(
  renderer: Renderer,
  images: 'refuse' | 'placeholder' | undefined,
  signal: AbortSignal,
): (plans: readonly GroupPlan[]) => Promise<void> {
  const prepared = new Map<TaskSource, Promise<void>>()
  const prepare = (source: TaskSource) => {
    const running = prepared.get(source) ?? source.prepare(playNeeds(renderer, images), signal)
    prepared.set(source, running)
    return running
  }
  return async (plans) => {
    for (const { source, reward, groupReward } of plans) {
      await prepare(source)
      reward.check(source.steps)
      groupReward?.check(source.steps)
    }
  }
}
