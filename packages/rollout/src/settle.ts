import { asError, DeadlineError } from '@tiltyard/core'

import type { Alarm, Alarms } from './alarms.ts'
import type { CancelSignal } from './cancellation.ts'

/** How foreign work came to an end of its own. */
type WorkEnd<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Why foreign work was told to stop. */
interface Late {
  readonly cause: 'deadline' | 'signal'
  /** The deadline's error, or the signal's reason. */
  readonly error: Error
}

/** How foreign work ended; `late`: after it was told to stop, or not in time: then it was left behind. */
export type Settled<T> =
  | WorkEnd<T>
  | (Late & {
      readonly kind: 'late'
      readonly end: WorkEnd<T> | { readonly kind: 'leftBehind' }
    })

export interface SettleOptions {
  readonly waitingFor: string
  /** Absent: no deadline. */
  readonly milliseconds?: number | undefined
  /** What the work gets to stop after its deadline. */
  readonly graceMs: number
  readonly signal?: CancelSignal | undefined
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
  const { signal } = options
  if (signal?.aborted === true) {
    const error = asError(signal.reason)
    return Promise.resolve({ kind: 'late', cause: 'signal', error, end: { kind: 'failed', error } })
  }
  return new Promise((resolve) => new Settling(options, resolve).begin(work))
}

/** One piece of foreign work under way. An object with its methods: there are several in each episode, and closures would be most of it. */
class Settling<T> implements Alarm {
  at = 0
  private late: Late | undefined
  private readonly options: SettleOptions
  private readonly resolve: (result: Settled<T>) => void
  private readonly cancel: () => void

  constructor(options: SettleOptions, resolve: (result: Settled<T>) => void) {
    this.options = options
    this.resolve = resolve
    this.cancel = () => this.tell('signal', options.cancelMs)
  }

  begin(work: () => Promise<T> | T): void {
    const { signal, milliseconds, alarms } = this.options
    signal?.addEventListener('abort', this.cancel, { once: true })
    if (milliseconds !== undefined) alarms.set(this, milliseconds)
    let working: Promise<T>
    try {
      working = Promise.resolve(work())
    } catch (error) {
      this.ended({ kind: 'failed', error })
      return
    }
    working.then(
      (value) => this.ended({ kind: 'done', value }),
      (error: unknown) => this.ended({ kind: 'failed', error }),
    )
  }

  /** At the deadline, and when the grace after it or after the signal is over. */
  ring(): void {
    if (this.late === undefined) this.tell('deadline', this.options.graceMs)
    else this.finish({ kind: 'late', ...this.late, end: { kind: 'leftBehind' } })
  }

  private tell(cause: Late['cause'], grace: number | undefined): void {
    const { waitingFor, milliseconds, signal, stop, alarms } = this.options
    const error =
      cause === 'signal' ? asError(signal!.reason) : new DeadlineError(waitingFor, milliseconds!)
    this.late ??= { cause, error }
    stop?.abort(error)
    if (grace === undefined) alarms.clear(this)
    else alarms.set(this, grace)
  }

  private ended(end: WorkEnd<T>): void {
    this.finish(this.late === undefined ? end : { kind: 'late', ...this.late, end })
  }

  private finish(result: Settled<T>): void {
    const { alarms, signal } = this.options
    alarms.clear(this)
    signal?.removeEventListener('abort', this.cancel)
    this.resolve(result)
  }
}
