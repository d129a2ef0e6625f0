import {
  ConfigError,
  checkContract,
  checkOptions,
  isPlainAddress,
  silentLogger,
  systemClock,
  type Backend,
  type Clock,
  type Logger,
} from '@tiltyard/core'
import { z } from 'zod'

import { memoryLedgerStore, type LedgerStore } from './ledger.ts'

export interface TinkerServerOptions {
  /** What samples and learns. Closed by whoever made it. */
  readonly backend: Backend
  /** Keys that are let in. Absent: everybody, which is allowed on loopback only. */
  readonly keys?: readonly string[]
  /** Where what is known of checkpoints is kept; their weights are the backend's. Default: in memory. */
  readonly ledger?: LedgerStore
  /**
   * How clients reach it, with whatever path is in front of `/api/v1`, where that is not what they name in their requests: behind a
   * proxy that ends TLS. Addresses of archives begin with it.
   */
  readonly advertise?: string
  /** What clients load as tokenizer: a name or a folder. Default: the model's name. */
  readonly tokenizer?: string
  /** Tokens that end a sample whose request names none. Default: none. */
  readonly endTokens?: readonly number[]
  readonly clock?: Clock
  readonly logger?: Logger
  readonly limits?: TinkerServerLimits
}

export interface TinkerServerLimits {
  /** Longest body in bytes. Default 64 MiB. */
  readonly bodyBytes?: number
  /** Samples under way; beyond it clients are asked to wait. Default 2,000. */
  readonly samples?: number
  /** Sessions at the same time. Default 1,000. */
  readonly sessions?: number
  /** Models in training at the same time. Default 64. */
  readonly models?: number
  /** Milliseconds for which a request for a result is held. Default 25,000; clients give up at 45,000. */
  readonly holdMs?: number
  /** Milliseconds without a heartbeat after which a session is over. Default 300,000. */
  readonly sessionMs?: number
  /** Milliseconds for which calls wait for one with a smaller number. Default 60,000. */
  readonly holeMs?: number
  /** Milliseconds for which a shutdown waits for what is under way. Default 10,000. */
  readonly graceMs?: number
}

export interface CheckedServerOptions {
  readonly backend: Backend
  readonly keys: readonly string[]
  readonly ledger: LedgerStore
  readonly advertise?: string
  readonly tokenizer?: string
  readonly endTokens: readonly number[]
  readonly clock: Clock
  readonly logger: Logger
  readonly limits: Required<TinkerServerLimits>
}

const count = z.int().min(1)
const anObject = z.custom<object>(
  (value) => typeof value === 'object' && value !== null,
  'expected an object',
)

const schema = z.strictObject({
  backend: anObject,
  keys: z.array(z.string().min(8, 'a key has at least 8 characters')).optional(),
  ledger: anObject.optional(),
  advertise: z
    .url({ protocol: /^https?$/, error: 'expected an http or https address' })
    .refine(isPlainAddress, {
      message: 'an address without user, query or fragment',
    })
    .optional(),
  tokenizer: z.string().optional(),
  endTokens: z.array(z.int().min(0)).optional(),
  clock: anObject.optional(),
  logger: anObject.optional(),
  limits: z
    .strictObject({
      bodyBytes: count.optional(),
      samples: count.optional(),
      sessions: count.optional(),
      models: count.optional(),
      holdMs: z.number().min(0).max(40_000, 'clients give up at 45,000').optional(),
      sessionMs: count.optional(),
      holeMs: count.optional(),
      graceMs: z.number().min(0).optional(),
    })
    .optional(),
})

export function checkServerOptions(options: TinkerServerOptions): CheckedServerOptions {
  checkOptions('tinkerServer', schema, options)
  checkContract('backend', 'backend/1', options.backend)
  return {
    backend: options.backend,
    keys: options.keys ?? [],
    ledger: options.ledger ?? memoryLedgerStore(),
    ...(options.advertise !== undefined && { advertise: options.advertise.replace(/\/+$/, '') }),
    ...(options.tokenizer !== undefined && { tokenizer: options.tokenizer }),
    endTokens: options.endTokens ?? [],
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
    limits: {
      bodyBytes: 64 * 1024 * 1024,
      samples: 2_000,
      sessions: 1_000,
      models: 64,
      holdMs: 25_000,
      sessionMs: 300_000,
      holeMs: 60_000,
      graceMs: 10_000,
      ...options.limits,
    },
  }
}

const LOOPBACK = ['127.0.0.1', '::1', 'localhost']

/** @throws ConfigError when everybody on a network would be let in. */
export function checkHost(host: string, keys: readonly string[]): void {
  if (keys.length > 0 || LOOPBACK.includes(host)) return
  throw new ConfigError('tinkerServer', [
    {
      at: 'keys',
      message: `listening on ${host} lets others in; give keys, or listen on 127.0.0.1`,
    },
  ])
}
