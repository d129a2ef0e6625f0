import type { PolicyVersion } from '@tiltyard/core'

import type { ForkCause } from '../graph/call-graph.ts'
import type { InferenceRoute } from './request.ts'

/** How a sampled reply could be read. */
export type ParseOutcome = 'ok' | 'args_invalid' | 'parse_failed'

export interface SampleRecord {
  /** Place among the replies of the attempt's record, counted from 0. */
  readonly reply: number
  readonly finish: 'stop' | 'length' | 'tool_calls'
  readonly parse: ParseOutcome
  readonly tokens: number
  /** Whether the sample was cut after a stop text or its first call. */
  readonly cut: boolean
  readonly trained: boolean
  /** Why it is not trained; absent when it is. */
  readonly untrained?: 'filtered' | 'after_reward' | 'undelivered' | 'no_logprobs'
  /** Why its prompt does not go on from the reply before it. */
  readonly fork?: ForkCause
}

/** One inference request and what came of it: facts and sizes, no text. */
export interface CallRecord {
  /** Id of the response; rewards name it. */
  readonly id: string
  /** Counts up in an attempt, from 0, in order of arrival. */
  readonly sequence: number
  readonly route: InferenceRoute
  readonly agent?: string
  readonly purpose?: string
  readonly version: PolicyVersion
  readonly promptTokens: number
  /** Tokens of the prompt that an earlier call of the attempt had already. */
  readonly reusedTokens: number
  readonly stream: boolean
  readonly maxTokens: number
  /** Whether fewer tokens were allowed than asked for. */
  readonly clamped: boolean
  /** Settings that the client sent and the run's took the place of. */
  readonly overridden: readonly string[]
  /** Fields that had no effect. */
  readonly ignored: readonly string[]
  readonly status: 'running' | 'ok' | 'failed' | 'cancelled'
  /** Code of the error, when it failed. */
  readonly error?: string
  /** Whether some client got all of it. */
  readonly delivered: boolean
  /** Times that it was given again to a client that tried again. */
  readonly replayed: number
  /** In order of choice; empty until it is over. */
  readonly samples: readonly SampleRecord[]
  readonly ms: number
}

/** The gateway's own view: it fills in what comes later. */
export type OpenRecord = { -readonly [Key in keyof CallRecord]: CallRecord[Key] }
