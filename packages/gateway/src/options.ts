import {
  checkOptions,
  silentLogger,
  systemClock,
  type Clock,
  type Logger,
  type PolicyHandle,
  type Tokenizer,
} from '@tiltyard/core'
import { z } from 'zod'

import type { ReasoningMode } from './graph/call-graph.ts'
import type { EchoTolerance } from './graph/identity.ts'

/** All may be left out. */
export interface GatewayOptions {
  /** Policies by alias, for calls of no attempt and as partners of those in one. More come with `publish`. */
  readonly policies?: Readonly<Record<string, PolicyHandle>>
  /** Lets clients call the published policies outside attempts, with the client's own settings. Without a key only on loopback. */
  readonly serving?: { readonly key?: string }
  /** For log-probabilities with the tokens' texts, and for texts sent to `/completions`. */
  readonly tokenizer?: Tokenizer
  /** False: on loopback, the path alone names the attempt. Default true. */
  readonly requireKey?: boolean
  /** Key of remote agents that fetch work. Without it there is no such route. */
  readonly workerKey?: string
  /** `strict`: byte for byte; `canonical`: arguments by meaning; `ids`: the ids of calls are enough. Default `canonical`. */
  readonly echoTolerance?: EchoTolerance
  /**
   * A client that leaves out reasoning means nothing by it (`restore`: it stays in the prompt as long as the template keeps it), or
   * just that (`client`: the conversation starts anew without it). Sampled reasoning is trained either way. Default `restore`.
   */
  readonly reasoning?: ReasoningMode
  /** Where messages hold their reasoning; empty: it is not sent. Default both, `reasoning_content` and `reasoning`. */
  readonly reasoningFields?: readonly ('reasoning_content' | 'reasoning')[]
  /** Token ids go out with every reply, not only when asked for. Default false. */
  readonly exposeTokenIds?: boolean
  /** Unknown model names are refused instead of meaning the attempt's policy. Default false. */
  readonly strictModels?: boolean
  /** Fields that are ignored, and named so, instead of refused. Default none. */
  readonly lenient?: readonly ('tool_choice' | 'response_format')[]
  /** Largest `n`. Default 8. */
  readonly maxN?: number
  /** Tokens of a reply when neither the client nor the run's limits say. Default 2,048. */
  readonly replyTokens?: number
  /** Calls under way in one attempt. Default 64. */
  readonly maxConcurrentCalls?: number
  /** Default 64 MiB. */
  readonly maxBodyBytes?: number
  /** How often a failing sampler is asked again. Default 2. */
  readonly samplerRetries?: number
  /** Longest sampling of a call, all tries together, in milliseconds. Default 570,000, below the 600,000 of clients. */
  readonly callMs?: number
  /** How long a call goes on that no client waits for, in milliseconds. Default 30,000. */
  readonly orphanMs?: number
  /** Silence after which a sign of life is sent, in milliseconds. Default 10,000. */
  readonly keepaliveMs?: number
  /** How long an answer that is no stream may stay silent, in milliseconds. Default 120,000. */
  readonly patienceMs?: number
  /** How long a call waits while the gateway is paused, in milliseconds. Default 60,000. */
  readonly holdMs?: number
  readonly clock?: Clock
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly wallClock?: () => number
  readonly logger?: Logger
}

const secret = z.string().min(16).regex(/^\S+$/, 'must have no spaces')
const positive = z.int().positive()
const object = z.custom<never>((value) => typeof value === 'object' && value !== null)

const schema = z.strictObject({
  policies: z.record(z.string().regex(/^[\w.-]+$/), object).optional(),
  serving: z.strictObject({ key: secret.optional() }).optional(),
  tokenizer: object.optional(),
  requireKey: z.boolean().optional(),
  workerKey: secret.optional(),
  echoTolerance: z.enum(['strict', 'canonical', 'ids']).optional(),
  reasoning: z.enum(['restore', 'client']).optional(),
  reasoningFields: z.array(z.enum(['reasoning_content', 'reasoning'])).optional(),
  exposeTokenIds: z.boolean().optional(),
  strictModels: z.boolean().optional(),
  lenient: z.array(z.enum(['tool_choice', 'response_format'])).optional(),
  maxN: positive.optional(),
  replyTokens: positive.optional(),
  maxConcurrentCalls: positive.optional(),
  maxBodyBytes: positive.optional(),
  samplerRetries: z.int().nonnegative().optional(),
  callMs: positive.optional(),
  orphanMs: z.int().nonnegative().optional(),
  keepaliveMs: positive.optional(),
  patienceMs: positive.optional(),
  holdMs: z.int().nonnegative().optional(),
  clock: object.optional(),
  wallClock: z.custom<never>((value) => typeof value === 'function').optional(),
  logger: object.optional(),
})

/** The options, whole. @throws ConfigError naming every mistake. */
export type Settings = Required<Omit<GatewayOptions, 'serving' | 'tokenizer' | 'workerKey'>> &
  Pick<GatewayOptions, 'serving' | 'tokenizer' | 'workerKey'>

export function settingsOf(options: GatewayOptions): Settings {
  checkOptions('gateway options', schema, options)
  return {
    policies: {},
    requireKey: true,
    echoTolerance: 'canonical',
    reasoning: 'restore',
    reasoningFields: ['reasoning_content', 'reasoning'],
    exposeTokenIds: false,
    strictModels: false,
    lenient: [],
    maxN: 8,
    replyTokens: 2_048,
    maxConcurrentCalls: 64,
    maxBodyBytes: 64 * 1024 * 1024,
    samplerRetries: 2,
    callMs: 570_000,
    orphanMs: 30_000,
    keepaliveMs: 10_000,
    patienceMs: 120_000,
    holdMs: 60_000,
    clock: systemClock,
    wallClock: Date.now,
    logger: silentLogger,
    ...options,
  }
}
