import type { Contract } from '@tiltyard/core'
import {
  failurePolicySchema,
  limitsSchema,
  malformedPolicySchema,
  waitsSchema,
} from '@tiltyard/rollout'
import { z } from 'zod'

/** zod pieces that the two kinds of training share. Every object is strict: an unknown key is a mistake with a nearest name. */

const positive = z.number().positive()
const count = z.int().nonnegative()
const fraction = z.number().min(0).max(1)

/** An object that fulfils a contract, told by its version literal. */
function contract<T extends Contract<string>>(version: T['specVersion']): z.ZodType<T> {
  return z.custom<T>(
    (value) => versionOf(value) === version,
    `expected an object with specVersion "${version}"`,
  )
}

function versionOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'specVersion' in value
    ? value.specVersion
    : undefined
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function'
}

const checkpointRef = z.strictObject({ path: z.string(), kind: z.enum(['training', 'sampling']) })
const lora = z.strictObject({
  rank: z.int().positive(),
  alpha: positive.optional(),
  seed: z.int().optional(),
})

/** Keys that supervised and reinforcement training have alike. */
export const whereKeys = {
  run: z.string().min(1),
  index: contract('run-index/1'),
  backend: contract('backend/1'),
  model: z.string().min(1),
  adaptation: z
    .union([z.literal('full'), lora], { error: 'expected "full" or { rank, alpha?, seed? }' })
    .optional(),
  from: checkpointRef.optional(),
  seed: z.int().nonnegative().optional(),
}

const schedule = z.strictObject({
  shape: z.enum(['constant', 'linear', 'cosine']),
  warmup: count.optional(),
  hold: count.optional(),
  floor: fraction.optional(),
})

const optimizerSchema = z.strictObject({
  learningRate: positive,
  beta1: fraction.optional(),
  beta2: fraction.optional(),
  epsilon: positive.optional(),
  weightDecay: z.number().nonnegative().optional(),
  clipNorm: z.number().nonnegative().optional(),
  schedule: schedule.optional(),
})

const checkpointsSchema = z.strictObject({
  every: count.optional(),
  rolling: count.optional(),
  atStart: z.boolean().optional(),
  ttlSeconds: positive.optional(),
  rollingTtlSeconds: positive.optional(),
})

const example = z.union(
  [
    z.strictObject({
      conversation: z.looseObject({ messages: z.array(z.unknown()).min(1) }),
      trainOn: z.string().optional(),
    }),
    z.strictObject({ rows: z.array(z.looseObject({ weights: z.instanceof(Float32Array) })) }),
  ],
  { error: 'expected { conversation, trainOn? } or { rows }' },
)

const trainOn = z.enum(['all_assistant_messages', 'last_assistant_message', 'last_assistant_turn'])

export const supervisedKeys = {
  examples: z.array(example).min(1, 'supervised training needs at least one example'),
  batchSize: z.int().positive(),
  epochs: z.int().positive().optional(),
  order: z.enum(['shuffled', 'listed']).optional(),
  steps: z.int().positive().optional(),
  trainOn: trainOn.optional(),
  weighting: z.enum(['example', 'token']).optional(),
  optimizer: optimizerSchema,
  heldOut: z.array(example).optional(),
  evalEvery: count.optional(),
  tokensPerCall: z.int().positive().optional(),
  checkpoints: checkpointsSchema.optional(),
}

const sampling = z.strictObject({
  temperature: z.number().nonnegative().optional(),
  topK: z.int().positive().optional(),
  topP: fraction.optional(),
})

const name = z.string().min(1)
const evaluation = z
  .strictObject({
    name,
    every: count.optional(),
    dataset: contract('dataset/1').optional(),
    sampling: sampling.optional(),
    limits: limitsSchema.optional(),
    evaluate: z
      .custom<(context: never) => Promise<unknown>>(isFunction, 'expected a function')
      .optional(),
  })
  .refine(
    ({ dataset, evaluate }) => (dataset === undefined) !== (evaluate === undefined),
    'an evaluation has either a dataset, or a function "evaluate"',
  )

const clip = { clipLow: z.number().nonnegative().optional(), clipHigh: positive.optional() }
const loss = z.discriminatedUnion(
  'name',
  [
    z.strictObject({ name: z.literal('importance_sampling') }),
    z.strictObject({ name: z.literal('ppo'), ...clip }),
    z.strictObject({ name: z.literal('cispo'), ...clip }),
    z.strictObject({ name: z.literal('dro'), beta: z.number().nonnegative() }),
  ],
  {
    error: 'expected a loss for sampled tokens by its name: importance_sampling, ppo, cispo or dro',
  },
)

const reference = z.union(
  [z.strictObject({ model: z.string() }), z.strictObject({ checkpoint: checkpointRef })],
  { error: 'expected { model } or { checkpoint }' },
)

export const trainingKeys = {
  renderer: contract('renderer/1'),
  dataset: contract('dataset/1'),
  steps: z.int().positive().optional(),
  limits: limitsSchema.optional(),
  rollout: z
    .strictObject({
      slots: z.int().positive().optional(),
      judgeSlots: z.int().positive().optional(),
      failures: failurePolicySchema.optional(),
      retryBudget: count.optional(),
      scoreAttempts: z.int().positive().optional(),
      malformed: malformedPolicySchema.optional(),
      images: z.enum(['refuse', 'placeholder']).optional(),
      minReplyTokens: z.int().positive().optional(),
      hooks: z
        .strictObject({ beforeReply: z.custom(isFunction, 'expected a function').optional() })
        .optional(),
      waits: waitsSchema.optional(),
    })
    .optional(),
  sampling: sampling.optional(),
  allowTempered: z.boolean().optional(),
  advantages: z
    .strictObject({
      baseline: z.enum(['mean', 'leave_one_out', 'none']).optional(),
      scale: z.enum(['none', 'std']).optional(),
      length: z.union([z.enum(['sum', 'mean']), positive]).optional(),
      withoutTokens: z.enum(['leave_out', 'keep']).optional(),
    })
    .optional(),
  keepConstantGroups: z.boolean().optional(),
  maxSkippedSteps: z.int().positive().optional(),
  kl: z
    .strictObject({
      reference,
      coefficient: positive,
      discount: fraction.optional(),
      discountOver: z.enum(['positions', 'sampled']).optional(),
      centered: z.boolean().optional(),
    })
    .optional(),
  loss: loss.optional(),
  optimizer: optimizerSchema,
  pipeline: z
    .strictObject({
      maxStaleness: count.optional(),
      substeps: z.int().positive().optional(),
      minibatches: z.int().positive().optional(),
      groupsPerStep: z.int().positive().optional(),
      stale: z.enum(['replay', 'drop']).optional(),
    })
    .optional(),
  tokensPerCall: z.int().positive().optional(),
  measureUpdate: z.boolean().optional(),
  evaluations: z.array(evaluation).optional(),
  evalEvery: count.optional(),
  checkpoints: checkpointsSchema.optional(),
  warmStart: z.strictObject(supervisedKeys).optional(),
}
