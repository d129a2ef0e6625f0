import {
  checkOptions,
  type Clock,
  type JsonObject,
  type Logger,
  type Message,
  silentLogger,
  systemClock,
} from '@tiltyard/core'
import { z } from 'zod'

import { jsonObject } from '../wire/json.ts'

/** A task of a server: what its `reset` takes to begin it. */
export interface OpenEnvTask {
  readonly id: string
  /** Members of `reset` beside the seed, for instance `{ split: 'train', index: 3 }`. */
  readonly reset: JsonObject
}

export interface OpenEnvSourceOptions {
  /** Base address of the server, with its path if it has one. */
  readonly url: string
  /** Tasks by split. Default: asked of the server's task API. */
  readonly tasks?: Readonly<Record<string, readonly OpenEnvTask[]>>
  /** How a first observation is shown. Default: its `messages`; without them one user message with the observation as JSON. */
  readonly prompt?: (observation: JsonObject, task: OpenEnvTask) => readonly Message[]
  /** Of the rewards that an episode's answers bring: the last one, or their sum. Default `last`. */
  readonly reward?: 'last' | 'sum'
  /** Scoring steps that the server tells in `metadata.scores`, recorded beside `reward`. Default: none. */
  readonly steps?: readonly string[]
  /** Name of the one tool by which a policy acts in an environment without tools. Default `act`. */
  readonly actionTool?: string
  /** Sent with every request, for instance `Authorization`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds to connect. Default 10,000. */
  readonly connectMs?: number
  /** Milliseconds for one answer. Default 60,000. */
  readonly messageMs?: number
  /** Milliseconds for which an episode waits until the server has a session free. Default 300,000. */
  readonly capacityMs?: number
  readonly clock?: Clock
  readonly logger?: Logger
  /** Default: the global one. */
  readonly fetch?: typeof fetch
}

export const openEnvSourceDefaults = {
  reward: 'last',
  actionTool: 'act',
  connectMs: 10_000,
  messageMs: 60_000,
  capacityMs: 300_000,
} as const

/** The score that every episode has: the server's reward. */
export const REWARD_STEP = 'reward'

export interface CheckedSourceOptions extends Omit<OpenEnvSourceOptions, 'url'> {
  readonly url: URL
  readonly reward: 'last' | 'sum'
  readonly steps: readonly string[]
  readonly actionTool: string
  readonly headers: Readonly<Record<string, string>>
  readonly connectMs: number
  readonly messageMs: number
  readonly capacityMs: number
  readonly clock: Clock
  readonly logger: Logger
  readonly fetch: typeof fetch
}

const milliseconds = z.int().min(1).optional()
const anObject = z.custom<object>(
  (value) => typeof value === 'object' && value !== null,
  'expected an object',
)
const aFunction = z.custom<() => void>(
  (value) => typeof value === 'function',
  'expected a function',
)
const task = z.strictObject({ id: z.string().min(1), reset: jsonObject })

const schema = z.strictObject({
  url: z
    .url({ protocol: /^(https?|wss?)$/, error: 'expected an http(s) or ws(s) address' })
    .refine((url) => !/\/\/[^/]*@/.test(url), {
      message: 'an address without user and password; `headers` may hold an Authorization',
    }),
  tasks: z.record(z.string(), z.array(task).min(1)).optional(),
  prompt: aFunction.optional(),
  reward: z.enum(['last', 'sum']).optional(),
  steps: z.array(z.string()).optional(),
  actionTool: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'expected 1 to 64 letters, digits, _ or -')
    .optional(),
  headers: z.record(z.string(), z.string()).optional(),
  connectMs: milliseconds,
  messageMs: milliseconds,
  capacityMs: milliseconds,
  clock: anObject.optional(),
  logger: anObject.optional(),
  fetch: aFunction.optional(),
})

/** @throws ConfigError with every mistake. */
export function checkSourceOptions(given: OpenEnvSourceOptions): CheckedSourceOptions {
  checkOptions('openenvSource', schema, given)
  return {
    ...openEnvSourceDefaults,
    headers: {},
    clock: systemClock,
    logger: silentLogger,
    fetch: globalThis.fetch,
    ...given,
    url: new URL(given.url),
    steps: [REWARD_STEP, ...(given.steps ?? [])],
  }
}

/** A route of the server, over `http` or `ws`. */
export function routeOf(base: URL, kind: 'http' | 'ws', path: string): URL {
  const url = new URL(base)
  const isSecure = url.protocol === 'https:' || url.protocol === 'wss:'
  url.protocol = `${kind}${isSecure ? 's' : ''}:`
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${path}`
  return url
}
