import { checkOptions, type Limits } from '@tiltyard/core'
import { z } from 'zod'

import type { FailurePolicy } from './failure-policy.ts'
import type { MalformedPolicy, RolloutOptions, Waits } from './options.ts'

/** The parts of a rollout's options that are data, for those who check a whole configuration at once. */

const whole = z.int().nonnegative()
const positive = z.int().positive()
const milliseconds = z.number().positive()

export const limitsSchema = z.strictObject({
  replyTokens: positive.optional(),
  episodeTokens: positive.optional(),
  sampledTokens: positive.optional(),
  contextWindow: positive.optional(),
  turns: positive.optional(),
  replies: positive.optional(),
  toolCalls: positive.optional(),
  episodeMs: milliseconds.optional(),
  toolMs: milliseconds.optional(),
  verifierMs: milliseconds.optional(),
})

export const malformedPolicySchema = z.strictObject({
  onMalformed: z
    .union([
      z.literal('end'),
      z.strictObject({ tell: positive, message: z.string().min(1).optional() }),
    ])
    .optional(),
  train: z.boolean().optional(),
})

export const failurePolicySchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('failFast') }),
  z.strictObject({ kind: z.literal('retry'), retries: whole.optional() }),
  z.strictObject({
    kind: z.literal('minGroup'),
    atLeast: positive.optional(),
    retries: whole.optional(),
  }),
])

export const waitsSchema = z.strictObject({
  openMs: milliseconds.optional(),
  replyMs: milliseconds.optional(),
  stepMs: milliseconds.optional(),
  scoreMs: milliseconds.optional(),
  endMs: milliseconds.optional(),
  graceMs: milliseconds.optional(),
  cancelMs: milliseconds.optional(),
})

const rolloutSchema = z.strictObject({
  seed: z.int(),
  limits: limitsSchema.optional(),
  malformed: malformedPolicySchema.optional(),
  failures: failurePolicySchema.optional(),
  waits: waitsSchema.optional(),
  images: z.enum(['refuse', 'placeholder']).optional(),
  minReplyTokens: positive.optional(),
  scoreAttempts: positive.optional(),
  recordGroup: z.boolean().optional(),
  policy: z.unknown(),
  slots: z.looseObject({ acquire: z.function() }),
  retryBudget: z.looseObject({ take: z.function() }).optional(),
  judgeSlots: z.looseObject({ acquire: z.function() }).optional(),
  writer: z.unknown().optional(),
  hooks: z.unknown().optional(),
  observer: z.unknown().optional(),
  logger: z.unknown().optional(),
  clock: z.unknown().optional(),
  wallClock: z.unknown().optional(),
  signal: z.unknown().optional(),
})

/** @throws ConfigError with every mistake in the options. */
export function checkRolloutOptions(options: RolloutOptions): void {
  checkOptions('rollout', rolloutSchema, options)
}

// The schemas and the types are written apart, for the sake of the types' sentences; here the compiler holds them together.
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : never) : never
type Plain<T> = T extends object ? { readonly [K in keyof T]: Plain<Exclude<T[K], undefined>> } : T
const agreed: readonly [
  Same<Plain<Required<z.output<typeof limitsSchema>>>, Plain<Required<Limits>>>,
  Same<Plain<Required<z.output<typeof waitsSchema>>>, Plain<Required<Waits>>>,
  Same<keyof z.output<typeof malformedPolicySchema>, keyof MalformedPolicy>,
  Same<z.output<typeof failurePolicySchema>['kind'], FailurePolicy['kind']>,
  Same<keyof z.output<typeof rolloutSchema>, keyof RolloutOptions>,
] = [true, true, true, true, true]
void agreed
