const marker: unique symbol = Symbol.for('tiltyard.error')

/** Facts about an error that are safe to record and print: sizes, names, limits. Never message bodies, never secrets. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | readonly string[]>>

export interface TiltyardErrorOptions extends ErrorOptions {
  readonly details?: ErrorDetails
}

/**
 * Base of every error that Tiltyard throws on purpose. It carries a stable `code`, the facts as `details` and the `cause`.
 * Known by a marker, not by `instanceof`, so that two copies of core in one program agree.
 */
export class TiltyardError extends Error {
  readonly code: string
  readonly details: ErrorDetails
  readonly [marker] = true

  constructor(code: string, message: string, options: TiltyardErrorOptions = {}) {
    super(message, options)
    this.name = new.target.name
    this.code = code
    this.details = options.details ?? {}
  }

  static is(value: unknown, code?: string): value is TiltyardError {
    if (typeof value !== 'object' || value === null || !(marker in value)) return false
    return code === undefined || (value as TiltyardError).code === code
  }
}

/** One mistake in something a person wrote: where it stands and what to do about it. */
export interface Mistake {
  /** Path of keys (`limits.replyTokens`) or `file:line`. Empty for the whole. */
  readonly at: string
  readonly message: string
}

/** A configuration, bundle or file that a person wrote is wrong. Holds every mistake found, not only the first. Code `CONFIG`. */
export class ConfigError extends TiltyardError {
  readonly mistakes: readonly Mistake[]

  constructor(what: string, mistakes: readonly Mistake[], options: TiltyardErrorOptions = {}) {
    const lines = mistakes.map(({ at, message }) => (at === '' ? message : `${at}: ${message}`))
    super(
      'CONFIG',
      `${what}: ${lines.length === 1 ? lines[0] : `\n  ${lines.join('\n  ')}`}`,
      options,
    )
    this.mistakes = mistakes
  }
}

/** A datum, sample or reward breaks a rule of training data; it was refused before anything was sent. Code `DATA`. */
export class DataError extends TiltyardError {
  constructor(message: string, options: TiltyardErrorOptions = {}) {
    super('DATA', message, options)
  }
}

/** A wait ended because its deadline passed. `details.waitedFor` says what for. Code `DEADLINE`. */
export class DeadlineError extends TiltyardError {
  constructor(waitedFor: string, milliseconds: number, options: TiltyardErrorOptions = {}) {
    super('DEADLINE', `gave up waiting for ${waitedFor} after ${milliseconds} ms`, {
      ...options,
      details: { ...options.details, waitedFor, milliseconds },
    })
  }
}

/** Something was used after it was closed, or twice where once is allowed. Code `STATE`. */
export class StateError extends TiltyardError {
  constructor(message: string, options: TiltyardErrorOptions = {}) {
    super('STATE', message, options)
  }
}

/** The backend lacks what was asked for, or refused it. Code `UNSUPPORTED`. */
export class UnsupportedError extends TiltyardError {
  constructor(message: string, options: TiltyardErrorOptions = {}) {
    super('UNSUPPORTED', message, options)
  }
}

/** A named thing (checkpoint, run, episode, model) does not exist. Code `NOT_FOUND`. */
export class NotFoundError extends TiltyardError {
  constructor(message: string, options: TiltyardErrorOptions = {}) {
    super('NOT_FOUND', message, options)
  }
}

/** A store (a disk, a bucket) failed or refused. `details` say what was done, and where. Code `STORE`. */
export class StoreError extends TiltyardError {
  constructor(message: string, options: TiltyardErrorOptions = {}) {
    super('STORE', message, options)
  }
}

/** A record of an error: what can be stored and shown. The message is limited to `MAX_ERROR_CHARS` characters. */
export interface ErrorSummary {
  readonly name: string
  readonly code?: string
  readonly message: string
}

/** Longest error message kept in a record or log, in UTF-16 units. */
export const MAX_ERROR_CHARS = 2_000

export function summarizeError(error: unknown): ErrorSummary {
  const message = error instanceof Error ? error.message : String(error)
  const name = error instanceof Error ? error.name : typeof error
  const short =
    message.length > MAX_ERROR_CHARS
      ? `${message.slice(0, MAX_ERROR_CHARS)}… (${message.length} characters)`
      : message
  return TiltyardError.is(error)
    ? { name, code: error.code, message: short }
    : { name, message: short }
}
