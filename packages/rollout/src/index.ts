export type { CancelSignal } from './cancellation.ts'
export { envEpisode } from './env-episode/env-episode.ts'
export { IMAGE_PLACEHOLDER, playNeeds } from './env-episode/images.ts'
export { MALFORMED_MESSAGE, MAX_DETAILS_CHARS } from './env-episode/malformed.ts'
export { EpisodeError } from './episode-error.ts'
export {
  createRetryBudget,
  DEFAULT_RETRIES,
  viableSize,
  type FailurePolicy,
  type RetryBudget,
} from './failure-policy.ts'
export { rolloutErrors, rolloutMetrics } from './metrics.ts'
export * from './options.ts'
export * from './play-batch.ts'
export { playGroup } from './play-group.ts'
export { playMetrics, type PlayMetric } from './play-metrics.ts'
export * from './played.ts'
export {
  cookbookAgentic,
  cookbookProblemReward,
  cookbookReward,
  matchups,
  withoutGrading,
  zeroOnLimit,
  zeroTotalOnLimit,
  type CookbookRewardOptions,
  type ProblemRewardOptions,
} from './presets/cookbook.ts'
export { createPolicyPointer, type PolicyPointer } from './policy.ts'
export { groupEvent } from './recorded.ts'
export { failurePolicySchema, limitsSchema, malformedPolicySchema, waitsSchema } from './schemas.ts'
export * from './seeds.ts'
export * from './sequences.ts'
export * from './slots.ts'
export { waitDefaults } from './waits.ts'
