import type { Contract } from './contract.ts'
import type { EndReason } from './end.ts'
import type {
  CheckpointEvent,
  EpisodeEvent,
  FailureEvent,
  MetricsEvent,
  RunEvent,
  RunRecord,
  ScoreEvent,
  StepEvent,
  TrainingEvent,
} from './records/events.ts'
import type { EpisodeKey, GroupKey, Split } from './records/keys.ts'
import type { Reward, Score } from './score.ts'

export type RunStatus = 'running' | 'completed' | 'interrupted' | 'failed'

export interface RunSummary {
  readonly name: string
  readonly status: RunStatus
  readonly startedAt: number
  /** Last completed step; absent before the first. */
  readonly step?: number
  /** What of the run can't be read, if anything. */
  readonly damage?: string
}

export interface GroupSummary {
  readonly key: GroupKey
  readonly task: string
  readonly members: number
  readonly dropped?: string
  /** Mean over the rewarded members; absent when there is none. */
  readonly reward?: number
}

/** A line about an episode: all that lists and plots need. Never loads messages or tokens. */
export interface EpisodeSummary {
  readonly key: EpisodeKey
  readonly task: string
  readonly fingerprint: string
  /** Absent: it was under way when its writer stopped. */
  readonly end?: EndReason
  readonly scores: Readonly<Record<string, Score>>
  readonly reward?: Reward
  readonly advantage?: number
  /** True once it was in an update; else why not; absent when it isn't decided. */
  readonly trained?: true | string
  readonly replies: number
  readonly calls: number
  readonly promptTokens: number
  readonly sampledTokens: number
  readonly startedAt: number
  readonly ms: number
}

/** Everything about an episode, folded from its events. */
export interface EpisodeRecord {
  readonly episode: EpisodeEvent
  readonly score?: ScoreEvent
  readonly training?: TrainingEvent
  readonly failures: readonly FailureEvent[]
}

export interface EpisodeFilter {
  readonly split?: Split
  readonly step?: number
  readonly group?: number
  readonly task?: string
  /** Name of the end reason, as `endName` gives it. */
  readonly end?: string
  readonly minReward?: number
  readonly maxReward?: number
}

export interface GroupFilter {
  readonly split?: Split
  readonly step?: number
}

/** A run as a trainer or a reader sees it: the record, and the events of its own level in order. */
export interface RunDetails {
  readonly record: RunRecord
  readonly summary: RunSummary
  readonly steps: readonly StepEvent[]
  readonly metrics: readonly MetricsEvent[]
  /** Those not deleted, by step. */
  readonly checkpoints: readonly CheckpointEvent[]
  readonly failures: readonly FailureEvent[]
}

/** The durable record of runs, on create-only writes and ordered listing: all that a folder and a bucket both promise. */
export interface RunIndex extends Contract<'run-index/1'> {
  readonly name: string
  /**
   * Takes the next epoch of a run and becomes its writer; an older writer of the run is fenced: its next append is refused. What
   * older writers acknowledged stays readable. `expect: 'new'` refuses a name that exists, `'resume'` one that doesn't.
   * @throws StateError `STATE` or NotFoundError accordingly.
   */
  claim(run: RunRecord, options: ClaimOptions): Promise<RunWriter>
  runs(): AsyncIterable<RunSummary>
  /** @throws NotFoundError naming the runs that exist. */
  run(name: string): Promise<RunDetails>
  groups(run: string, filter?: GroupFilter): AsyncIterable<GroupSummary>
  /** In order of split, step, group, member, attempt. */
  episodes(run: string, filter?: EpisodeFilter): AsyncIterable<EpisodeSummary>
  /** @throws NotFoundError */
  episode(run: string, key: EpisodeKey): Promise<EpisodeRecord>
  close(): Promise<void>
}

export interface ClaimOptions {
  readonly expect: 'new' | 'resume'
  readonly signal?: AbortSignal
  /**
   * Resuming after step n drops what older writers recorded of steps after n: it is played again. Default: keep all. */
  readonly resumeAfterStep?: number
}

/** Appends events. Equal content again is no second event; readers fold to the newest epoch. */
export interface RunWriter {
  /** Counts up with each claim of the run. */
  readonly epoch: number
  /** Accepts the event; resolves at once unless the writer is far behind. It is durable when `flush` resolves, or after a bounded time. @throws StateError when a newer writer has taken the run. */
  append(event: RunEvent): Promise<void>
  /** Resolves when all that was appended is durable. @throws what the store said, naming what is missing. */
  flush(): Promise<void>
  /** Flushes and lets go. Idempotent. */
  close(): Promise<void>
}
