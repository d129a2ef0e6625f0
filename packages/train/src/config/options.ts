import type {
  AdamParams,
  Conversation,
  Dataset,
  Limits,
  Logger,
  Loss,
  Renderer,
  Sampler,
  SamplerRef,
  SamplingSettings,
  TrainOn,
  WeightedTokens,
} from '@tiltyard/core'
import type { FailurePolicy, PlayOptions } from '@tiltyard/rollout'

/** How rewards of a group become advantages. Formulas: `groupAdvantages`. */
export interface AdvantageOptions {
  /** What is subtracted: the group's mean, the mean of the other members, or nothing. Default `mean`. */
  readonly baseline?: 'mean' | 'leave_one_out' | 'none'
  /** Divide by the group's standard deviation. Default `none`. */
  readonly scale?: 'none' | 'std'
  /**
   * How an episode's advantage is spread over its tokens. `sum`: each token has it, long episodes weigh more (default).
   * `mean`: each token has it divided by the episode's trained tokens. A number: divided by that constant.
   */
  readonly length?: 'sum' | 'mean' | number
  /** Whether a rewarded episode without a token to train counts for the baseline. Default `leave_out`. */
  readonly withoutTokens?: 'leave_out' | 'keep'
}

/** A pull towards a reference policy, added to the advantages of sampled tokens. Formula: `klPenalties`. */
export interface KlOptions {
  readonly reference: SamplerRef
  /** Above 0. */
  readonly coefficient: number
  /** 0 ≤ γ ≤ 1. Default 0: each token answers for itself. */
  readonly discount?: number
  /** What a position counts for the discount: every position of the sequence, or sampled tokens only. Default `positions`. */
  readonly discountOver?: 'positions' | 'sampled'
  /** Subtract the mean over the step, so that the penalty sums to zero. Default true; false is on-policy distillation. */
  readonly centered?: boolean
}

/** Multiplier of the learning rate over the optimizer steps of a run. Formulas: `scheduleMultiplier`. */
export interface Schedule {
  readonly shape: 'constant' | 'linear' | 'cosine'
  /** Optimizer steps over which the rate rises from 0. Default 0. */
  readonly warmup?: number
  /** Optimizer steps after the warmup over which the rate stays before it falls. Default 0. */
  readonly hold?: number
  /** Where the multiplier ends. Default 0. */
  readonly floor?: number
}

export interface OptimizerOptions extends AdamParams {
  /** Default `{ shape: 'constant' }`. */
  readonly schedule?: Schedule
}

/** A loss for sampled tokens. */
export type PolicyLoss = Exclude<Loss, { readonly name: 'cross_entropy' }>

/** One pipeline: synchronous, asynchronous and streaming training differ in these numbers only. */
export interface PipelineOptions {
  /** How many steps a sample may lag behind the weights that it trains. Default 0: on-policy. */
  readonly maxStaleness?: number
  /** Optimizer steps in a step. Default 1. */
  readonly substeps?: number
  /** Forward-backward calls in a substep, sent as their groups arrive. Default 1: when the step's groups are whole. */
  readonly minibatches?: number
  /**
   * Absent: step n trains batch n, whatever arrives first. A number: a step trains as soon as so many groups with something
   * to learn from have arrived, and constant or dropped groups are replaced by the next of the dataset.
   */
  readonly groupsPerStep?: number
  /** With `groupsPerStep`: what becomes of a group that is older than `maxStaleness` when its turn comes. Default `replay`. */
  readonly stale?: 'replay' | 'drop'
}

export interface CheckpointOptions {
  /** Steps between full checkpoints (weights, optimizer, sampler). Default 20; 0: only the final one. */
  readonly every?: number
  /** Steps between rolling checkpoints (weights and optimizer; the one before is deleted). Default 0: none. */
  readonly rolling?: number
  /** Before the first step. Default: when `maxStaleness` is above 0. */
  readonly atStart?: boolean
  /** Lifetime of full checkpoints in seconds, the final one apart. Default: unlimited. */
  readonly ttlSeconds?: number
  /** Lifetime of rolling checkpoints in seconds. Default: unlimited. */
  readonly rollingTtlSeconds?: number
}

/** How episodes are played, in training and evaluation alike. */
export interface RolloutSettings extends Pick<
  PlayOptions,
  'malformed' | 'images' | 'minReplyTokens' | 'hooks' | 'waits'
> {
  /** Episodes under way at once, in the whole run. Default 64. */
  readonly slots?: number
  /** Verifiers at once that need the record only, and run after the slot is free. Default: unbounded. */
  readonly judgeSlots?: number
  /** What a failed episode does to its group. Default: played again, three times in a group. */
  readonly failures?: FailurePolicy
  /** Episodes that are played again in the whole run. Default: unlimited. */
  readonly retryBudget?: number
  /** How often a failing scorer is asked. Default 2. */
  readonly scoreAttempts?: number
}

/** Plays tasks with the policy of now; never trains. */
export interface RolloutEvaluation {
  readonly name: string
  /** Played whole, all its batches. */
  readonly dataset: Dataset
  /** Default: temperature 1. */
  readonly sampling?: SamplingSettings
  /** Default: the training's. */
  readonly limits?: Limits
  /** Steps between evaluations. Default: the training's `evalEvery`. */
  readonly every?: number
}

/** What a custom evaluation gets: one immutable policy. */
export interface EvaluationContext {
  readonly sampler: Sampler
  readonly renderer: Renderer
  /** Training steps that the policy has seen. */
  readonly step: number
  readonly seed: number
  readonly signal: AbortSignal
  readonly logger: Logger
}

export interface CustomEvaluation {
  readonly name: string
  readonly every?: number
  evaluate(context: EvaluationContext): Promise<Readonly<Record<string, number>>>
}

export type Evaluation = RolloutEvaluation | CustomEvaluation

/** One example: a conversation, rendered by the renderer; or token rows that are ready. */
export type SupervisedExample =
  | { readonly conversation: Conversation; readonly trainOn?: TrainOn }
  | { readonly rows: readonly WeightedTokens[] }

/** What supervised training is made of, apart from where it runs. */
export interface SupervisedSettings {
  readonly examples: readonly SupervisedExample[]
  /** Examples in a step. */
  readonly batchSize: number
  /** Passes over the examples. Default 1. */
  readonly epochs?: number
  /** Order of the examples in a pass: drawn anew from the run's seed, or as listed, for a curriculum. Default `shuffled`. */
  readonly order?: 'shuffled' | 'listed'
  /** Stops earlier, or goes on past `epochs`. Default: as the epochs give. */
  readonly steps?: number
  /** Default `all_assistant_messages`. */
  readonly trainOn?: TrainOn
  /** `example`: the weights of an example sum to 1. `token`: each trained token weighs 1. Default `example`. */
  readonly weighting?: 'example' | 'token'
  readonly optimizer: OptimizerOptions
  /** Examples that are never trained; their loss is evaluated. */
  readonly heldOut?: readonly SupervisedExample[]
  /** Steps between evaluations of the held-out loss, and of the final weights. Default 20; 0: none. */
  readonly evalEvery?: number
  /** Most tokens in one forward-backward call. Default: unlimited. */
  readonly tokensPerCall?: number
  readonly checkpoints?: CheckpointOptions
}
