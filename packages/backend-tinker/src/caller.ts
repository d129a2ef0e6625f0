import { DeadlineError, TiltyardError, after, asError, withDeadline } from '@tiltyard/core'

import type { Credentials } from './credentials.ts'
import { TinkerError, detailOf, short, type TinkerErrorCode } from './errors.ts'
import { createNotices, type Notices } from './notices.ts'
import type { CheckedOptions } from './options.ts'
import type { Transport, WireBody, WireRequest, WireResponse } from './transport.ts'

/** One call of the service. */
export interface Call {
  /** What is being done, in words, for errors and logs. */
  readonly operation: string
  readonly method?: WireRequest['method']
  /** Below the base address, beginning with a slash. */
  readonly path: string
  /** Given as a function it is made when it is sent, and again for each try. */
  readonly body?: WireBody | (() => WireBody)
  readonly contentType?: string
  readonly accept?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one try. Default: the option. */
  readonly timeout?: number
  /** Statuses that the caller handles; they are answered, not thrown. */
  readonly handles?: readonly number[]
  /** Milliseconds for which it is tried again. Default: the option; 0 for one try. */
  readonly retries?: number
  /** `refuse`: a 409 that stays after a few tries is a real one, such as a name that is taken. Default: tried again as long as others. */
  readonly conflict?: 'retry' | 'refuse'
  readonly waits?: boolean
  /** Signed with this in place of the present credential. */
  readonly credential?: string
}

export interface Caller {
  /** An answer with a status below 300, or one that the call handles. */
  send(call: Call): Promise<WireResponse>
  json<T>(call: Call & { readonly json?: unknown }): Promise<T>
  readonly notices: Notices
}

const PREFIX = '/api/v1'
const FIRST_DELAY_MS = 500
/** Silence after which it is told that an answer is waited for. */
const SILENCE_MS = 10_000
const LONGEST_DELAY_MS = 10_000
const LONGEST_ASKED_DELAY_MS = 60_000
const BILLING_PAUSE_MS = 5_000
const CONFLICT_TRIES = 3

export function createCaller(
  options: CheckedOptions,
  transport: Transport,
  credentials: Credentials,
  /** Ends the calls that bring no signal of their own. */
  ended: AbortSignal,
): Caller {
  const { baseUrl, clock, logger, deadlines } = options
  const notices = createNotices(logger, clock)

  const attempt = async (call: Call, idempotencyKey: string, tries: number) => {
    const credential = call.credential ?? (await credentials.current())
    const { method = 'POST', body } = call
    const content = typeof body === 'function' ? body() : body
    const response = await withDeadline(
      (signal) =>
        transport.send({
          method,
          url: baseUrl + PREFIX + call.path,
          headers: {
            'x-api-key': credential,
            'user-agent': `tiltyard/0.1 node/${process.versions.node}`,
            accept: call.accept ?? 'application/json',
            'x-stainless-retry-count': String(tries),
            ...(content !== undefined && {
              'content-type': call.contentType ?? 'application/json',
            }),
            ...(method !== 'GET' && { 'x-idempotency-key': idempotencyKey }),
            ...call.headers,
          },
          ...(content !== undefined && { body: content }),
          signal,
          waits: call.waits === true,
        }),
      {
        waitingFor: `the service to ${call.operation}`,
        milliseconds: call.timeout ?? deadlines.request,
        signal: call.signal,
        clock,
      },
    )
    return { response, credential }
  }

  /** Tells when an answer is long in coming. A call that waits for a result may take its time. */
  const watched: typeof attempt = async (call, ...rest) => {
    if (call.waits === true) return attempt(call, ...rest)
    const { operation } = call
    const callOff = after(clock, SILENCE_MS, () =>
      notices.say(`silence ${operation}`, `the service has not answered yet: ${operation}`),
    )
    return attempt(call, ...rest).finally(callOff)
  }

  const send = async (given: Call): Promise<WireResponse> => {
    const call = { ...given, signal: given.signal ?? ended }
    const idempotencyKey = `tiltyard-${crypto.randomUUID()}`
    const began = clock.now()
    const budget = call.retries ?? deadlines.retries
    let renewed = false
    for (let tries = 0; ; tries += 1) {
      let failure: TiltyardError
      let delay: number | undefined
      try {
        const { response, credential } = await watched(call, idempotencyKey, tries)
        const unpaid = cantPay(response)
        const handled = call.handles?.includes(response.status) === true
        if (response.status < 300 || (handled && !(unpaid && response.status === 429)))
          return response
        failure = errorOf(call, response, credentials.scrub)
        if (response.status === 401 && !renewed && call.credential === undefined) {
          renewed = true
          if (credentials.refused(credential)) continue
        }
        if (unpaid && clock.now() - began < deadlines.billing) {
          notices.say('billing', `paused: the account can't pay; ${failure.message}`)
          await clock.sleep(BILLING_PAUSE_MS, call.signal)
          continue
        }
        if (unpaid || !isRetried(call, response, tries)) throw failure
        delay = askedDelay(response)
      } catch (error) {
        if (call.signal.aborted) throw asError(call.signal.reason)
        if (TiltyardError.is(error) && error.code !== 'DEADLINE') throw error
        failure = unreachable(call, error, baseUrl, credentials.scrub)
      }
      const pause = delay ?? backoff(tries)
      if (clock.now() + pause - began > budget) throw failure
      notices.say(`retry ${call.operation}`, `trying again to ${call.operation}`, {
        tries: tries + 1,
        pauseMs: Math.round(pause),
        reason: failure.message,
      })
      await clock.sleep(pause, call.signal)
    }
  }

  return {
    send,
    notices,
    async json<T>({ json, ...call }: Call & { readonly json?: unknown }) {
      const body = json === undefined ? undefined : JSON.stringify(json)
      const response = await send({ ...call, ...(body !== undefined && { body }) })
      return parseJson(call.operation, response) as T
    },
  }
}

/** An answer that may be empty as JSON; an empty one as an object without members. */
export function parseJson(operation: string, { body, status }: WireResponse): unknown {
  if (body.length === 0) return {}
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    // Without its cause, which quotes the body.
    throw new TinkerError(
      'TINKER_FAILED',
      `${operation}: the answer (${body.length} bytes, status ${status}) is no JSON; is the base address that of a Tinker service?`,
      { operation, status },
    )
  }
}

function isRetried(call: Call, response: WireResponse, tries: number): boolean {
  const asked = response.header('x-should-retry')
  if (asked === 'true') return true
  if (asked === 'false') return false
  if (response.status === 409) return call.conflict !== 'refuse' || tries + 1 < CONFLICT_TRIES
  return response.status === 408 || response.status === 429 || response.status >= 500
}

/** What no waiting mends: some services, and gateways before them, say it with the status of too many requests. */
function cantPay({ status, body }: WireResponse): boolean {
  if (status !== 429) return status === 402
  return /\b(?:credits?|balance|billing|payment)\b/i.test(detailOf(body, (text) => text))
}

/** Half a second, doubled up to ten; up to a quarter less, so that many clients don't come back as one. */
export function backoff(tries: number): number {
  const delay = Math.min(FIRST_DELAY_MS * 2 ** tries, LONGEST_DELAY_MS)
  return delay * (1 - 0.25 * Math.random())
}

/** The pause that the service asks for, in milliseconds. */
function askedDelay(response: WireResponse): number | undefined {
  const milliseconds = Number(response.header('retry-after-ms') ?? Number.NaN)
  const wish = response.header('retry-after')
  const seconds = Number(wish ?? Number.NaN)
  const date = wish === undefined ? Number.NaN : Date.parse(wish) - Date.now()
  const asked = [milliseconds, 1_000 * seconds, date].find(Number.isFinite)
  return asked !== undefined && asked > 0 && asked <= LONGEST_ASKED_DELAY_MS ? asked : undefined
}

function unreachable(
  { operation }: Call,
  error: unknown,
  baseUrl: string,
  scrub: (text: string) => string,
): TinkerError {
  const said = error instanceof DeadlineError ? error.message : causeOf(error)
  const why = scrub(said)
  return new TinkerError(
    'TINKER_UNREACHABLE',
    `can't ${operation}: ${new URL(baseUrl).host} gave no answer (${why}); check the base address and the network`,
    { operation },
    // An error that holds a secret goes no further.
    why === said ? { cause: error } : {},
  )
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error.cause instanceof Error ? error.cause.message : undefined
  return short(inner ?? (error.message === '' ? error.name : error.message))
}

/** What a status means, and what to do about it. */
export function errorOf(
  { operation }: Pick<Call, 'operation'>,
  response: WireResponse,
  scrub: (text: string) => string,
): TinkerError {
  const { status } = response
  const said = detailOf(response.body, scrub)
  const requestId = response.header('x-request-id')
  const [code, advice] = meaningOf(cantPay(response) ? 402 : status)
  return new TinkerError(
    code,
    `can't ${operation}: the service answered ${status}${said === '' ? '' : ` (${said})`}${advice}`,
    {
      operation,
      status,
      ...(requestId !== undefined && { requestId: scrub(requestId) }),
      category: status < 500 ? 'user' : 'server',
    },
  )
}

function meaningOf(status: number): readonly [TinkerErrorCode, string] {
  if (status === 401) return ['TINKER_KEY', '; the key is wrong or has been withdrawn']
  if (status === 403) return ['TINKER_KEY', '; the key may not do this']
  if (status === 402)
    return ['TINKER_BILLING', '; add credit, then resume from the last checkpoint']
  if (status === 429) return ['TINKER_UNREACHABLE', '; there are too many requests']
  if (status >= 500 || status === 408) return ['TINKER_UNREACHABLE', '']
  return ['TINKER_REFUSED', '']
}
