import { TiltyardError, type FailurePhase, type TaskRef } from '@tiltyard/core'

/** An episode failed. `details` say in which phase, and of which task and episode where known; the cause is what broke. Code `EPISODE`. */
export class EpisodeError extends TiltyardError {
  readonly phase: FailurePhase

  constructor(phase: FailurePhase, cause: unknown, place?: { task: TaskRef; episode: string }) {
    const where = place === undefined ? '' : ` ${place.episode} (task ${place.task.id})`
    const why = cause instanceof Error ? cause.message : String(cause)
    super('EPISODE', `episode${where} failed in phase ${phase}: ${why}`, {
      cause,
      details: {
        phase,
        ...(place === undefined ? {} : { task: place.task.id, episode: place.episode }),
      },
    })
    this.phase = phase
  }
}

/** Phase and cause of what a play rejected with; `agent` when it doesn't say. */
export function phaseOf(error: unknown): { readonly phase: FailurePhase; readonly cause: unknown } {
  if (TiltyardError.is(error, 'EPISODE') && 'phase' in error)
    return { phase: error.phase as FailurePhase, cause: error.cause }
  return { phase: 'agent', cause: error }
}

/**
 * Whether playing again is in vain: a mistake in the set-up, something that the backend can't do, or a record that takes
 * nothing any more. Such an error ends the run.
 */
export function isFatal(phase: FailurePhase, cause: unknown): boolean {
  if (TiltyardError.is(cause, 'CONFIG') || TiltyardError.is(cause, 'UNSUPPORTED')) return true
  return (
    phase === 'record' && (TiltyardError.is(cause, 'STATE') || TiltyardError.is(cause, 'STORE'))
  )
}
