import { TiltyardError, asError } from '@tiltyard/core'

import { backoff, errorOf, parseJson, type Caller } from './caller.ts'
import type { Credentials } from './credentials.ts'
import { TinkerError, short, type TinkerCategory } from './errors.ts'
import type { CheckedOptions } from './options.ts'
import type { WireResponse } from './transport.ts'

/** The service's name for a result that is not there yet. */
export interface Future {
  readonly request_id: string
}

interface Awaited<T> {
  /** What was asked for, in words. */
  readonly operation: string
  /** The service's name for the kind of request, for its own statistics. */
  readonly type: string
  readonly signal?: AbortSignal | undefined
  readonly decode: (bytes: Uint8Array) => T
  readonly fromJson: (value: never) => T
}

/** Thrown when the service has forgotten a result; what is repeatable is asked for anew. */
export class ForgottenError extends TinkerError {}

export interface Futures {
  /** Waits for a result, however long; the caller's signal bounds it. */
  result<T>(future: Future, awaited: Awaited<T>): Promise<T>
}

const POLL_TIMEOUT_MS = 45_000
const LONGEST_POLL_DELAY_MS = 30_000
const BILLING_PAUSE_MS = 5_000
const MAX_BAD_REQUESTS = 3

export function createFutures(
  options: CheckedOptions,
  caller: Caller,
  { scrub }: Credentials,
): Futures {
  const { clock, deadlines } = options
  const { notices } = caller

  return {
    async result<T>({ request_id: id }: Future, awaited: Awaited<T>): Promise<T> {
      const { operation, type, signal } = awaited
      const pauses = `pause ${operation}`
      let metadataOnly = true
      let badRequests = 0
      let unanswered = 0
      let answered = clock.now()
      let unpaid: number | undefined
      for (;;) {
        let response: WireResponse
        try {
          response = await caller.send({
            operation: `wait for: ${operation}`,
            path: '/retrieve_future',
            body: JSON.stringify({ request_id: id, allow_metadata_only: metadataOnly }),
            accept: 'application/x-protobuf, application/json',
            headers: { 'x-tinker-request-type': type },
            timeout: POLL_TIMEOUT_MS,
            retries: 0,
            handles: statuses,
            waits: true,
            signal,
          })
        } catch (error) {
          if (signal?.aborted === true) throw asError(signal.reason)
          if (!TiltyardError.is(error, 'TINKER_UNREACHABLE')) throw error
          // Nothing is known of the result; it is asked for again, never made again.
          if (clock.now() - answered > deadlines.retries) throw error
          notices.say(`poll ${operation}`, `no answer while waiting for: ${operation}`, {
            requestId: id,
            reason: error.message,
          })
          await clock.sleep(Math.min(1_000 * 2 ** unanswered, LONGEST_POLL_DELAY_MS), signal)
          unanswered += 1
          continue
        }
        const { status } = response
        const failure = () => errorOf({ operation }, response, scrub)
        if (status === 429) {
          if (clock.now() - answered > deadlines.retries) throw failure()
          await clock.sleep(Math.min(1_000 * 2 ** unanswered, LONGEST_POLL_DELAY_MS), signal)
          unanswered += 1
          continue
        }
        if (status >= 500) {
          // Once at once, as the service expects; after that with pauses, and not for ever.
          if (clock.now() - answered > deadlines.retries) throw failure()
          if (unanswered > 0) await clock.sleep(backoff(unanswered - 1), signal)
          unanswered += 1
          continue
        }
        unanswered = 0
        answered = clock.now()
        if (status === 402) {
          unpaid ??= answered
          if (answered - unpaid >= deadlines.billing) throw failure()
          notices.say('billing', `paused: the account can't pay; add credit, or stop the run`)
          await clock.sleep(BILLING_PAUSE_MS, signal)
          continue
        }
        // What a proxy may have made up is asked again a few times: asking changes nothing.
        if (status === 400 || status === 409) {
          badRequests += 1
          if (badRequests > MAX_BAD_REQUESTS) throw failure()
          continue
        }
        if (status === 410) {
          throw new ForgottenError(
            'TINKER_FAILED',
            `can't ${operation}: the service has lost its result`,
            { operation, status, requestId: id, category: 'server' },
          )
        }
        if (status === 404) throw sessionOver(operation, id, failure())
        if (status !== 408 && status >= 300) throw failure()
        if (isProtobuf(response)) {
          notices.over(pauses, `going on: ${operation}`)
          return awaited.decode(response.body)
        }
        const answer = parseJson(operation, response) as FutureAnswer
        if (status === 408 || answer.type === 'try_again') {
          if (
            answer.queue_state === 'paused_capacity' ||
            answer.queue_state === 'paused_rate_limit'
          )
            notices.say(pauses, `paused: ${operation}; ${reasonOf(answer, scrub)}`)
          continue
        }
        if (answer.status === 'complete_metadata') {
          metadataOnly = false
          continue
        }
        notices.over(pauses, `going on: ${operation}`)
        if (typeof answer.error === 'string') throw failed(operation, id, answer, scrub)
        return awaited.fromJson(answer as never)
      }
    },
  }
}

/** All that mean something here; whatever else comes is thrown by the call. */
const statuses = [
  400, 402, 404, 408, 409, 410, 429, 500, 501, 502, 503, 504, 520, 521, 522, 523, 524, 529,
]

interface FutureAnswer {
  readonly type?: string
  readonly queue_state?: string
  readonly queue_state_reason?: string | null
  readonly status?: string
  readonly error?: string
  readonly category?: string
}

function isProtobuf(response: WireResponse): boolean {
  return response.header('content-type')?.includes('application/x-protobuf') === true
}

function reasonOf(answer: FutureAnswer, scrub: (text: string) => string): string {
  if (answer.queue_state_reason != null) return short(scrub(answer.queue_state_reason))
  return answer.queue_state === 'paused_capacity'
    ? 'the service is short of capacity'
    : 'too many models or samplers at the same time for this account'
}

function failed(
  operation: string,
  requestId: string,
  answer: FutureAnswer,
  scrub: (text: string) => string,
): TinkerError {
  const category: TinkerCategory =
    answer.category === 'user' || answer.category === 'server' ? answer.category : 'unknown'
  return new TinkerError(
    category === 'user' ? 'TINKER_REFUSED' : 'TINKER_FAILED',
    `can't ${operation}: ${short(scrub(answer.error ?? ''))}`,
    { operation, requestId, category },
  )
}

function sessionOver(operation: string, requestId: string, cause: TinkerError): TinkerError {
  return new TinkerError(
    'TINKER_SESSION',
    `can't ${operation}: the service knows nothing of this request any more (${cause.message}); its session may be over, so start again from the last checkpoint`,
    { operation, requestId, status: 404 },
    { cause },
  )
}
