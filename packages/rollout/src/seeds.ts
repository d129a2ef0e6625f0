import { deriveSeed, type EpisodeKey } from '@tiltyard/core'

/** Base of all random choices of an episode, a uint32: of the run's seed and the episode's place, whatever ran before it. */
export function episodeSeed(runSeed: number, key: EpisodeKey): number {
  const { split, evaluation = '', step, group, member, attempt } = key
  return deriveSeed(runSeed, split, evaluation, step, group, member, attempt)
}

/** Seed of an episode's reply `index` (from 0), a uint32. */
export function replySeed(seed: number, index: number): number {
  return deriveSeed(seed, 'reply', index)
}
