import {
  checkOptions,
  ConfigError,
  isPlainAddress,
  silentLogger,
  systemClock,
  type Clock,
  type Logger,
} from '@tiltyard/core'
import type { Dispatcher } from 'undici'
import { z } from 'zod'

/** Where the hosted service is. */
export const HOSTED_URL = 'https://tinker.thinkingmachines.dev/services/tinker-prod'

/** Version of the protocol that this client speaks, as the service knows it. */
export const PROTOCOL_VERSION = '0.38.0'

export type TinkerKey = string | (() => string | Promise<string>)

export interface TinkerOptions {
  /** Default: the hosted service. A path in it is kept. */
  readonly baseUrl?: string
  /** Key or token; or a function that gives one, asked again when the service refuses the last. Kept out of logs and errors. */
  readonly apiKey: TinkerKey
  /** Used for every request in place of the client's own pooled connections. */
  readonly fetch?: typeof fetch
  /** Connections: an undici `Agent`, `Pool` or proxy agent in place of the client's own. Closed by whoever made it. */
  readonly dispatcher?: Dispatcher
  readonly clock?: Clock
  /** Default: where a run that uses the backend logs. */
  readonly logger?: Logger
  readonly projectId?: string
  /** Of the session, for the service's lists. */
  readonly tags?: readonly string[]
  readonly userMetadata?: Readonly<Record<string, string>>
  readonly deadlines?: TinkerDeadlines
  readonly limits?: TinkerLimits
}

/** In milliseconds. */
export interface TinkerDeadlines {
  /** One HTTP request, from connecting to the last byte. Default 60,000. */
  readonly request?: number
  /** How long a request is tried again while the service is out of reach or overloaded. Default 300,000. */
  readonly retries?: number
  /** A sample, from the call to its tokens, pauses included. Default 3,600,000. */
  readonly sample?: number
  /** A training call, likewise. Default 3,600,000. */
  readonly training?: number
  /** How long to wait for a paid-up account when the service answers 402. Default 0: stop at once. */
  readonly billing?: number
}

export interface TinkerLimits {
  /** Samples not yet answered. Default 2,000; the service may ask for fewer. */
  readonly samples?: number
  /** Sample requests being sent at the same time. Default 400. */
  readonly sending?: number
  /** Connections for short calls; those that wait for results have as many as there are samples, at most. Default 64. */
  readonly connections?: number
}

export interface CheckedOptions {
  readonly baseUrl: string
  readonly apiKey: TinkerKey
  readonly fetch?: typeof fetch
  readonly dispatcher?: Dispatcher
  readonly clock: Clock
  readonly logger: Logger
  readonly projectId?: string
  readonly tags: readonly string[]
  readonly userMetadata: Readonly<Record<string, string>>
  readonly deadlines: Required<TinkerDeadlines>
  readonly limits: Required<TinkerLimits>
}

const count = z.int().min(1)
const milliseconds = z.number().min(0)
const aFunction = z.custom<never>((value) => typeof value === 'function', 'expected a function')
const anObject = z.custom<never>(
  (value) => typeof value === 'object' && value !== null,
  'expected an object',
)

const schema = z.strictObject({
  baseUrl: z
    .url({ protocol: /^https?$/, error: 'expected an http or https address' })
    .refine(isPlainAddress, {
      message: 'an address without user, query or fragment; the key has an option of its own',
    })
    .optional(),
  apiKey: z.union([z.string(), aFunction], 'expected a key, or a function that gives one'),
  fetch: aFunction.optional(),
  dispatcher: anObject.optional(),
  clock: anObject.optional(),
  logger: anObject.optional(),
  projectId: z.string().optional(),
  tags: z.array(z.string()).optional(),
  userMetadata: z.record(z.string(), z.string()).optional(),
  deadlines: z
    .strictObject({
      request: milliseconds.optional(),
      retries: milliseconds.optional(),
      sample: milliseconds.optional(),
      training: milliseconds.optional(),
      billing: milliseconds.optional(),
    })
    .optional(),
  limits: z
    .strictObject({
      samples: count.optional(),
      sending: count.optional(),
      connections: count.optional(),
    })
    .optional(),
})

export function checkTinkerOptions(options: TinkerOptions): CheckedOptions {
  checkOptions('tinker', schema, options)
  const baseUrl = (options.baseUrl ?? HOSTED_URL).replace(/\/+$/, '')
  if (typeof options.apiKey === 'string') checkKey(options.apiKey, baseUrl)
  return {
    baseUrl,
    apiKey: options.apiKey,
    ...(options.fetch !== undefined && { fetch: options.fetch }),
    ...(options.dispatcher !== undefined && { dispatcher: options.dispatcher }),
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
    ...(options.projectId !== undefined && { projectId: options.projectId }),
    tags: options.tags ?? [],
    userMetadata: options.userMetadata ?? {},
    deadlines: {
      request: 60_000,
      retries: 300_000,
      sample: 3_600_000,
      training: 3_600_000,
      billing: 0,
      ...options.deadlines,
    },
    limits: { samples: 2_000, sending: 400, connections: 64, ...options.limits },
  }
}

/**
 * A key that can't be right for this service, before it is sent anywhere.
 * @throws ConfigError that tells what a key looks like, never the key.
 */
export function checkKey(key: string, baseUrl: string): void {
  const hosted = new URL(baseUrl).host === new URL(HOSTED_URL).host
  if (key === '')
    throw new ConfigError('tinker', [
      { at: 'apiKey', message: 'is empty; a recipe usually passes process.env.TINKER_API_KEY' },
    ])
  if (/[^\x21-\x7e]/.test(key))
    throw new ConfigError('tinker', [
      {
        at: 'apiKey',
        message: 'holds characters that no key has, perhaps a line break at its end',
      },
    ])
  if (hosted && !key.startsWith('tml-') && !key.startsWith('eyJ'))
    throw new ConfigError('tinker', [
      {
        at: 'apiKey',
        message: 'is no key of the hosted service: those begin with tml- (a key) or eyJ (a token)',
      },
    ])
}
