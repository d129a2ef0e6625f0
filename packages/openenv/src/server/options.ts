import {
  checkContract,
  checkOptions,
  type Clock,
  ConfigError,
  type Logger,
  type RewardRule,
  silentLogger,
  systemClock,
  type TaskSource,
} from '@tiltyard/core'
import { z } from 'zod'

export interface OpenEnvServerOptions {
  /** The tasks that are played, for instance `bundleSource(bundle)`. Closed by whoever made it. */
  readonly source: TaskSource
  /** Turns an episode's scores into the reward of its last answer; the same rule as a training's. */
  readonly reward: RewardRule
  /** Splits of the source that clients may list and pick from, beside `all`. Default: none. */
  readonly splits?: readonly string[]
  /** What `GET /metadata` tells. */
  readonly about?: {
    /** Default: the source's. */
    readonly name?: string
    readonly description?: string
    readonly readme?: string
    /** Default `1.0.0`. */
    readonly version?: string
    readonly author?: string
  }
  /** Keys that are let in, as `Authorization: Bearer`. Absent: everybody, which is allowed on loopback only. */
  readonly keys?: readonly string[]
  /** Leaves out the routes that keep no state: `/reset`, `/step`, `/state`. Default false. */
  readonly production?: boolean
  /** Repeats an answer's metadata inside its observation, where clients of before June 2026 read it. Default false. */
  readonly nestedMetadata?: boolean
  readonly limits?: OpenEnvServerLimits
  readonly clock?: Clock
  readonly logger?: Logger
}

export interface OpenEnvServerLimits {
  /** Sessions at the same time, each with at most one live episode. Default 16. */
  readonly sessions?: number
  /** Milliseconds without a request after which a session that no socket holds is over. Default 600,000. */
  readonly idleMs?: number
  /** Milliseconds in which an answer is given; beyond them the episode fails. Default 55,000: official clients give up at 60,000. */
  readonly answerMs?: number
  /** Tool calls of an episode; one more cuts it. Default: unbounded. */
  readonly toolCalls?: number
  /** Milliseconds of one tool call. Default: the source's own limit. */
  readonly toolMs?: number
}

export const openEnvServerDefaults = {
  sessions: 16,
  idleMs: 600_000,
  answerMs: 55_000,
} as const

export interface CheckedServerOptions {
  readonly source: TaskSource
  readonly reward: RewardRule
  readonly splits: readonly string[]
  readonly about: NonNullable<OpenEnvServerOptions['about']>
  readonly keys: readonly string[]
  readonly production: boolean
  readonly nestedMetadata: boolean
  readonly limits: OpenEnvServerLimits &
    Required<Pick<OpenEnvServerLimits, keyof typeof openEnvServerDefaults>>
  readonly clock: Clock
  readonly logger: Logger
}

const count = z.int().min(1).optional()
const anObject = z.custom<object>(
  (value) => typeof value === 'object' && value !== null,
  'expected an object',
)
const text = z.string().optional()

const schema = z.strictObject({
  source: anObject,
  reward: anObject,
  splits: z.array(z.string()).optional(),
  about: z
    .strictObject({ name: text, description: text, readme: text, version: text, author: text })
    .optional(),
  keys: z.array(z.string().min(8, 'a key has at least 8 characters')).optional(),
  production: z.boolean().optional(),
  nestedMetadata: z.boolean().optional(),
  limits: z
    .strictObject({
      sessions: count,
      idleMs: count,
      answerMs: count,
      toolCalls: count,
      toolMs: count,
    })
    .optional(),
  clock: anObject.optional(),
  logger: anObject.optional(),
})

/** @throws ConfigError with every mistake; also when the rule can't decide between the source's steps. */
export function checkServerOptions(given: OpenEnvServerOptions): CheckedServerOptions {
  checkOptions('openenvServer', schema, given)
  const { source, reward, about = {} } = given
  checkContract('source', 'task-source/1', source)
  checkContract('reward', 'reward-rule/1', reward)
  reward.check(source.steps)
  return {
    source,
    reward,
    splits: ['all', ...(given.splits ?? []).filter((split) => split !== 'all')],
    about,
    keys: given.keys ?? [],
    production: given.production ?? false,
    nestedMetadata: given.nestedMetadata ?? false,
    limits: { ...openEnvServerDefaults, ...given.limits },
    clock: given.clock ?? systemClock,
    logger: given.logger ?? silentLogger,
  }
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost'])

/** @throws ConfigError when everybody on a network would be let in. */
export function checkHost(host: string, keys: readonly string[]): void {
  if (keys.length > 0 || LOOPBACK.has(host)) return
  throw new ConfigError('openenvServer', [
    {
      at: 'host',
      message: `"${host}" is reached by others, and this server asks for no key; listen on 127.0.0.1, or set "keys"`,
    },
  ])
}
