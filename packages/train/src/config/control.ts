import type { Clock, Logger } from '@tiltyard/core'
import type { RolloutEvent } from '@tiltyard/rollout'

import type { EvaluationReport, SupervisedReport } from '../report.ts'

/** What may differ between a run and its fingerprint when it goes on. */
export type Change = 'renderer' | 'dataset' | 'loss' | 'model'

/** How one process runs a training; none of it is part of the run's identity. */
export interface RunControl {
  /** `new`: the run must not exist (default). `resume`: it must. `either`: goes on if it exists. */
  readonly start?: 'new' | 'resume' | 'either'
  /** Differences that a resumed run may have; others are refused. Default none. */
  readonly allowChanges?: readonly Change[]
  /** Refuse to go on where the same bytes are not promised: on another executor. Default false: a warning. */
  readonly exact?: boolean
  /** Go on although another process seems to write the run; it is fenced. Default false. */
  readonly takeOver?: boolean
  /** Ends softly: the step under way is finished, or dropped if it has not trained yet; then a checkpoint is saved. */
  readonly stop?: AbortSignal
  /** Ends at once, within 2 s, with the signal's reason; nothing is saved. */
  readonly signal?: AbortSignal
  readonly logger?: Logger
  /** Told of what happens between reports. What it throws is logged and ignored. */
  readonly observer?: (event: ProgressEvent) => void
  /** For tests and simulations. */
  readonly clock?: Clock
  /** Milliseconds since 1970, for records. Default `Date.now`. */
  readonly wallClock?: () => number
  /** Versions of packages, recorded with the run. */
  readonly versions?: Readonly<Record<string, string>>
  /** Recorded with the run. */
  readonly git?: { readonly commit: string; readonly dirty: boolean }
}

export type ProgressEvent =
  /** A run begins to play or train, after opening what it needs. `from` counts the steps that its weights have seen. */
  | {
      readonly type: 'begin'
      readonly run: string
      readonly from: number
      readonly resumed: boolean
    }
  /** A step of the supervised training that a run begins with. */
  | { readonly type: 'warm_start'; readonly report: SupervisedReport }
  /** A group of a step was played: so many of it so far. */
  | { readonly type: 'group'; readonly step: number; readonly done: number }
  /** What happens in episodes, in training and evaluation. */
  | { readonly type: 'rollout'; readonly event: RolloutEvent }
  | { readonly type: 'evaluation'; readonly report: EvaluationReport }
