import { TiltyardError } from '@tiltyard/core'

/** A request that can't be answered as it was made. */
export class BadRequest extends TiltyardError {
  constructor(message: string) {
    super('BAD_REQUEST', message)
  }
}

const statuses: Readonly<Record<string, number>> = {
  BAD_REQUEST: 400,
  // A name that no run can have.
  CONFIG: 400,
  NOT_FOUND: 404,
  STORE: 503,
  DEADLINE: 504,
}

export function problem(status: number, code: string, message: string): Response {
  return Response.json({ error: { code, message } }, { status })
}

/** What is told of an error: our own are for people to read, of others only that they happened. */
export function problemOf(error: unknown): Response {
  if (TiltyardError.is(error))
    return problem(statuses[error.code] ?? 500, error.code, error.message)
  return problem(500, 'INTERNAL', 'the explorer failed at this; its terminal says why')
}
