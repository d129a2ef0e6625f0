import { createHash } from 'node:crypto'

import {
  StoreError,
  TiltyardError,
  summarizeError,
  systemClock,
  withDeadline,
  type Clock,
} from '@tiltyard/core'
import { AwsV4Signer } from 'aws4fetch'

import { describeAnswer, errorCodeOf, type Answer } from './answers.ts'
import { cacheCredentials } from './credentials.ts'
import type { S3RunIndexOptions } from './options.ts'

export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly url: string
  /** For messages and reports. */
  readonly key: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  readonly signal?: AbortSignal | undefined
  /** Default: the index's own. */
  readonly patienceMs?: number
}

/**
 * Sends a request until it is answered by something other than "later": 5xx, 429, 408, 409, expired credentials, or no answer in time.
 * @throws StoreError once the patience is at an end, with the last answer.
 */
export type S3Client = (request: S3Request) => Promise<Answer>

const laterStatuses: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504])
const expiredCodes: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
])

const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 5_000
/** What a store may ask for by `Retry-After`. */
const LONGEST_ASKED_WAIT_MS = 30_000

const DEFAULT_TIMEOUT_MS = 30_000
/** Training goes on meanwhile. */
const DEFAULT_PATIENCE_MS = 120_000
/** Where no connection comes about and none ever did, the address is more likely to be wrong than the store to be away. */
const FIRST_CONTACT_MS = 10_000

export function createClient(
  /** The store's, for messages. */
  name: string,
  options: S3RunIndexOptions,
  /** Patience and the waits between attempts go by it. */
  clock: Clock = systemClock,
): S3Client {
  const { region = 'us-east-1', onRequest } = options
  const { timeoutMs = DEFAULT_TIMEOUT_MS, patienceMs = DEFAULT_PATIENCE_MS } = options
  const send = options.fetch ?? globalThis.fetch
  const credentials = cacheCredentials(options.credentials)
  /** Keys derived for a day, region and secret. */
  const cache = new Map<string, ArrayBuffer>()

  const attemptOnce = async (request: S3Request, signal: AbortSignal) => {
    const { method, url, headers, body } = request
    const used = await credentials.get()
    const signed = await new AwsV4Signer({
      method,
      url,
      headers: { ...headers, 'x-amz-content-sha256': sha256(body) },
      accessKeyId: used.accessKeyId,
      secretAccessKey: used.secretAccessKey,
      ...(used.sessionToken === undefined ? {} : { sessionToken: used.sessionToken }),
      region,
      service: 's3',
      cache,
    }).sign()
    const response = await send(signed.url, {
      method,
      headers: signed.headers,
      ...(body === undefined ? {} : { body }),
      // A signature holds for one host; a redirect tells of a wrong region or endpoint.
      redirect: 'manual',
      signal,
    })
    const answer: Answer = {
      status: response.status,
      headers: response.headers,
      body: new Uint8Array(await response.arrayBuffer()),
    }
    const isExpired = answer.status >= 400 && expiredCodes.has(errorCodeOf(answer) ?? '')
    if (isExpired) credentials.forget(used)
    return { answer, isLater: isExpired || laterStatuses.has(answer.status) }
  }

  let hasAnswered = false
  const attemptIn = async (request: S3Request, attempt: number): Promise<Answer | Later> => {
    const { method, key, signal } = request
    const began = clock.now()
    const report = (status?: number) =>
      onRequest?.({
        method,
        key,
        attempt,
        ms: clock.now() - began,
        ...(status === undefined ? {} : { status }),
      })
    try {
      const { answer, isLater } = await withDeadline((inner) => attemptOnce(request, inner), {
        waitingFor: `${method} ${key}`,
        milliseconds: timeoutMs,
        signal,
      })
      hasAnswered = true
      report(answer.status)
      return isLater
        ? { what: describeAnswer(answer), wait: retryAfter(answer) ?? growingWait(attempt) }
        : answer
    } catch (error) {
      report()
      signal?.throwIfAborted()
      const isUnreachable = !hasAnswered && !TiltyardError.is(error, 'DEADLINE')
      return { what: describeFailure(error), wait: growingWait(attempt), isUnreachable }
    }
  }

  return async (request) => {
    const { method, key, signal, patienceMs: patience = patienceMs } = request
    const started = clock.now()
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await attemptIn(request, attempt)
      if (!('wait' in outcome)) return outcome
      const spent = clock.now() - started
      const most = outcome.isUnreachable === true ? Math.min(patience, FIRST_CONTACT_MS) : patience
      if (spent + outcome.wait > most) {
        throw new StoreError(
          `${name}: gave up ${method} of "${key}" after ${attempt === 1 ? '1 attempt' : `${attempt} attempts`} in ${Math.round(spent / 1_000)} s; the last: ${outcome.what}`,
          { details: { method, key, attempts: attempt } },
        )
      }
      await clock.sleep(outcome.wait, signal)
    }
  }
}

/** An attempt that should be made again. */
interface Later {
  readonly what: string
  /** Milliseconds until the next one. */
  readonly wait: number
  readonly isUnreachable?: boolean
}

/** Grows twofold up to a bound; half of it is random, so that writers don't come back together. */
function growingWait(attempt: number): number {
  const most = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempt - 1))
  return most / 2 + (Math.random() * most) / 2
}

function retryAfter({ headers }: Answer): number | undefined {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds * 1_000, LONGEST_ASKED_WAIT_MS)
    : undefined
}

/** fetch tells little itself; what happened is in the cause. */
function describeFailure(error: unknown): string {
  const { message } = summarizeError(error)
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : undefined
  return cause === undefined ? message : `${message} (${summarizeError(cause).message})`
}

function sha256(body: Uint8Array | undefined): string {
  return createHash('sha256')
    .update(body ?? '')
    .digest('hex')
}
