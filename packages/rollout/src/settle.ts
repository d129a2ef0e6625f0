import { asError, DeadlineError } from '@tiltyard/core'

import type { Alarms } from './alarms.ts'

/** How foreign work came to an end of its own. */
type WorkEnd<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }

/** How foreign work ended; `late`: after it was told to stop, or not in time: then it was left behind. */
export type Settled<T> =
  | WorkEnd<T>
  | {
      readonly kind: 'late'
      readonly cause: 'deadline' | 'signal'
      /** The deadline's error, or the signal's reason. */
      readonly error: Error
      readonly end: WorkEnd<T> | { readonly kind: 'leftBehind' }
    }

export interface SettleOptions {
  readonly waitingFor: string
  /** Absent: no deadline. */
  readonly milliseconds?: number | undefined
  /** What the work gets to stop after its deadline. */
  readonly graceMs: number
  readonly signal?: AbortSignal | undefined
  /** What the work gets to stop after the signal. Absent: as long as it takes. */
  readonly cancelMs?: number | undefined
  /** Tells the work to stop. Absent: the work can't be told. */
  readonly stop?: AbortController
  readonly alarms: Alarms
}

/**
 * Runs `work`, and never rejects. At the deadline or with the signal the work is told to stop; it then has its grace to do so,
 * because what still runs may disturb what comes next. What comes after that is ignored. With an aborted signal the work isn't
 * begun.
 */
export function settle<T>(work: () => Promise<T> | T, options: SettleOptions): Promise<Settled<T>> {
  const { waitingFor, milliseconds, graceMs, signal, cancelMs, stop } = options
  if (signal?.aborted === true) {
    const error = asError(signal.reason)
    return Promise.resolve({ kind: 'late', cause: 'signal', error, end: { kind: 'failed', error } })
  }
  const alarm = options.alarms.alarm()
  return new Promise((resolve) => {
    let late: { readonly cause: 'deadline' | 'signal'; readonly error: Error } | undefined

    const finish = (result: Settled<T>) => {
      alarm.clear()
      signal?.removeEventListener('abort', cancel)
      resolve(result)
    }
    const ended = (end: WorkEnd<T>) => {
      finish(late === undefined ? end : { kind: 'late', ...late, end })
    }
    const tell = (cause: 'deadline' | 'signal', error: Error, grace: number | undefined) => {
      const first = (late ??= { cause, error })
      stop?.abort(error)
      if (grace === undefined) alarm.clear()
      else alarm.set(grace, () => finish({ kind: 'late', ...first, end: { kind: 'leftBehind' } }))
    }
    const cancel = () => tell('signal', asError(signal!.reason), cancelMs)

    signal?.addEventListener('abort', cancel, { once: true })
    if (milliseconds !== undefined) {
      const error = () => new DeadlineError(waitingFor, milliseconds)
      alarm.set(milliseconds, () => tell('deadline', error(), graceMs))
    }
    started(work).then(
      (value) => ended({ kind: 'done', value }),
      (error: unknown) => ended({ kind: 'failed', error }),
    )
  })
}

/** Also what throws before it gives a promise. */
async function started<T>(work: () => Promise<T> | T): Promise<T> {
  return work()
}
