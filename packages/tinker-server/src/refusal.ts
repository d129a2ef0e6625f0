import { TiltyardError } from '@tiltyard/core'
import { z } from 'zod'

/** A request that is answered with a status and a sentence. */
export class Refusal extends TiltyardError {
  readonly status: number

  constructor(status: number, message: string, options?: ErrorOptions) {
    super('REFUSED', message, options)
    this.status = status
  }
}

/** How a failed operation is told: by whose fault, and what happened. */
export interface Failure {
  readonly error: string
  readonly category: 'user' | 'server'
}

/** Mistakes of the one who asked; the rest is ours. */
const USER_CODES = ['DATA', 'UNSUPPORTED', 'CONFIG', 'NOT_FOUND', 'REFUSED', 'STATE']

export function failureOf(error: unknown): Failure {
  if (error instanceof z.ZodError) return { error: z.prettifyError(error), category: 'user' }
  if (TiltyardError.is(error)) {
    const category = USER_CODES.includes(error.code) ? 'user' : 'server'
    return { error: error.message, category }
  }
  // A message that nobody wrote for a client may hold anything; its name says enough.
  return { error: `the server failed (${nameOf(error)})`, category: 'server' }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
