import { createHash } from 'node:crypto'

import { StoreError, summarizeError, systemClock, withDeadline, type Clock } from '@tiltyard/core'
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
}

/**
 * Sends a request until it is answered by something other than "later": 5xx, 429, 408, 409, expired credentials, or no answer in time.
 * @throws StoreError once all attempts are used up, with the last answer.
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
/** About a minute of waits: training goes on meanwhile. */
const DEFAULT_ATTEMPTS = 20
/** Somebody waits for a read. */
const READ_ATTEMPTS = 6

export function createClient(
  /** The store's, for messages. */
  name: string,
  options: S3RunIndexOptions,
  /** For the waits between attempts. */
  clock: Pick<Clock, 'sleep'> = systemClock,
): S3Client {
  const { region = 'us-east-1', onRequest } = options
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
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
    const isExpired = expiredCodes.has(errorCodeOf(answer) ?? '')
    if (isExpired) credentials.forget(used)
    return { answer, isLater: isExpired || laterStatuses.has(answer.status) }
  }

  return async (request) => {
    const { method, key, signal } = request
    const most = options.attempts ?? DEFAULT_ATTEMPTS
    const attempts = method === 'GET' ? Math.min(most, READ_ATTEMPTS) : most
    let last = ''
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const began = performance.now()
      let askedWait: number | undefined
      try {
        const { answer, isLater } = await withDeadline((inner) => attemptOnce(request, inner), {
          waitingFor: `${method} ${key}`,
          milliseconds: timeoutMs,
          signal,
        })
        onRequest?.({ method, key, status: answer.status, attempt, ms: performance.now() - began })
        if (!isLater) return answer
        last = describeAnswer(answer)
        askedWait = retryAfter(answer)
      } catch (error) {
        onRequest?.({ method, key, attempt, ms: performance.now() - began })
        signal?.throwIfAborted()
        last = describeFailure(error)
      }
      if (attempt < attempts) await clock.sleep(askedWait ?? wait(attempt), signal)
    }
    throw new StoreError(
      `${name}: gave up ${method} of "${key}" after ${attempts} attempts; the last: ${last}`,
      {
        details: { method, key, attempts },
      },
    )
  }
}

/** Grows twofold up to a bound; half of it is random, so that writers don't come back together. */
function wait(attempt: number): number {
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
