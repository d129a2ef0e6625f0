import { TiltyardError, type TiltyardErrorOptions } from '@tiltyard/core'

/**
 * Why the service didn't do what was asked.
 * - `TINKER_KEY`: the key is wrong, or may not do this.
 * - `TINKER_BILLING`: the account can't pay.
 * - `TINKER_REFUSED`: the request is wrong (the service calls it a mistake of the user).
 * - `TINKER_FAILED`: the service took the request and failed.
 * - `TINKER_UNREACHABLE`: no usable answer within the time for retries.
 * - `TINKER_SESSION`: the session is over, with all that it held.
 */
export type TinkerErrorCode =
  | 'TINKER_KEY'
  | 'TINKER_BILLING'
  | 'TINKER_REFUSED'
  | 'TINKER_FAILED'
  | 'TINKER_UNREACHABLE'
  | 'TINKER_SESSION'

/** Who the service says is at fault. */
export type TinkerCategory = 'user' | 'server' | 'unknown'

export interface TinkerErrorFacts {
  /** What was being done, in words. */
  readonly operation: string
  readonly status?: number
  readonly category?: TinkerCategory
  /** The service's name for the request; quote it when you ask for help. */
  readonly requestId?: string
}

/** An error of a Tinker service. `details` has the operation and, where known, status, category and request id. */
export class TinkerError extends TiltyardError {
  declare readonly code: TinkerErrorCode
  readonly operation: string
  readonly status: number | undefined
  readonly category: TinkerCategory | undefined
  readonly requestId: string | undefined

  constructor(
    code: TinkerErrorCode,
    message: string,
    facts: TinkerErrorFacts,
    options: TiltyardErrorOptions = {},
  ) {
    super(code, message, { ...options, details: { ...options.details, ...facts } })
    this.operation = facts.operation
    this.status = facts.status
    this.category = facts.category
    this.requestId = facts.requestId
  }
}

/** Longest text of the service that is repeated in an error, in characters. */
const MAX_TEXT = 500

/** What the service says is wrong: the `detail` of its JSON, or the body as text; short, without secrets. */
export function detailOf(body: Uint8Array, scrub: (text: string) => string): string {
  const text = new TextDecoder().decode(body.subarray(0, 8 * MAX_TEXT))
  return short(scrub(detailOfText(text)))
}

function detailOfText(text: string): string {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json === 'object' && json !== null) {
      const { detail, error } = json as { detail?: unknown; error?: unknown }
      const said = detail ?? error
      if (said !== undefined) return typeof said === 'string' ? said : JSON.stringify(said)
    }
  } catch {
    // Not JSON: a proxy's page, or a body that was cut.
  }
  return text
}

export function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT)}…` : line
}
