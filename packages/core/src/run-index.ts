import type { Contract } from './contract.ts'
import type { EndReason } from './end.ts'
import type {
  CallEvent,
  CheckpointEvent,
  EndEvent,
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
  /** Milliseconds since 1970; absent when the run's record can't be read. */
  readonly startedAt?: number
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
  readonly summary: EpisodeSummary
  /** Absent: it was under way when its writer stopped, or can't be read (`damage`). */
  readonly episode?: EpisodeEvent
  /** What its journal holds, in order; may be empty once `episode` is there. */
  readonly journal: readonly CallEvent[]
  readonly score?: ScoreEvent
  readonly training?: TrainingEvent
  readonly failures: readonly FailureEvent[]
  /** What of it can't be read, if anything. */
  readonly damage?: string
}

export interface EpisodeFilter {
  readonly split?: Split
  /** Only this evaluation. Default: all, the unnamed one too. */
  readonly evaluation?: string
  readonly step?: number
  readonly group?: number
  readonly task?: string
  /** Name of the end reason, as `endName` gives it; `unfinished` for those without one. */
  readonly end?: string
  readonly minReward?: number
  readonly maxReward?: number
  /** `true`: only what was in an update. `false`: only what was kept out of one, whatever the reason. */
  readonly trained?: boolean
}

export interface GroupFilter {
  readonly split?: Split
  readonly evaluation?: string
  readonly step?: number
}

/** A run as a trainer or a reader sees it: the record, and the events of its own level in order. */
export interface RunDetails {
  readonly record: RunRecord
  readonly summary: RunSummary
  readonly steps: readonly StepEvent[]
  /** In the order in which they were recorded. */
  readonly metrics: readonly MetricsEvent[]
  /** Those not deleted, by step. */
  readonly checkpoints: readonly CheckpointEvent[]
  /** Those of no episode. */
  readonly failures: readonly FailureEvent[]
  /** How the run ended, when its newest writer said so. */
  readonly end?: EndEvent
}

/** The durable record of runs, on create-only writes and ordered listing: all that a folder and a bucket both promise. */
export interface RunIndex extends Contract<'run-index/1'> {
  readonly name: string
  /**
   * Takes the next epoch of a run and becomes its writer; an older writer of the run is fenced: nothing that it appends from then
   * on becomes durable. What older writers acknowledged stays readable.
   * @throws StateError when a `'new'` name exists, or when another writer seems alive: the message says which and since when.
   * @throws NotFoundError when a run to resume or join doesn't exist.
   */
  claim(run: RunRecord, options: ClaimOptions): Promise<RunWriter>
  /** In order of name. A damaged run is among them, and says so. */
  runs(): AsyncIterable<RunSummary>
  /** @throws NotFoundError naming the runs that exist. */
  run(name: string): Promise<RunDetails>
  /** In order of split, evaluation, step, group. @throws NotFoundError */
  groups(run: string, filter?: GroupFilter): AsyncIterable<GroupSummary>
  /**
   * In order of split (train first), evaluation, step, group, member, attempt. Cost follows the groups of runs that can hold an
   * answer, not the others. @throws NotFoundError
   */
  episodes(run: string, filter?: EpisodeFilter): AsyncIterable<EpisodeSummary>
  /** @throws NotFoundError */
  episode(run: string, key: EpisodeKey): Promise<EpisodeRecord>
  /** As `episodes`, with everything about each; cheaper than asking for them one by one. Absent: ask one by one. */
  records?(run: string, filter?: EpisodeFilter): AsyncIterable<EpisodeRecord>
  /** Absent when the index can't look after itself. */
  readonly upkeep?: RunUpkeep
  close(): Promise<void>
}

/** Looking after what is stored. */
export interface RunUpkeep {
  /** Reads all of a run and tells what of it can't be read. */
  check(run: string): AsyncIterable<Damage>
  /** Removes what no reader sees: what a resume dropped, journals of ended episodes, remains of a crash. */
  collect(run: string, options?: { readonly dryRun?: boolean }): Promise<Collected>
  /** Deletes a run. @throws StateError while a writer is alive. */
  remove(run: string): Promise<Collected>
}

export interface Damage {
  /** Name of the file or object, and the place in it. */
  readonly where: string
  readonly what: string
}

/** What was removed, or would be. */
export interface Collected {
  readonly blobs: number
  readonly bytes: number
}

export interface ClaimOptions {
  /** `new`: the name must be free. `resume`: the run must exist. `join`: write beside its present writer, in the same epoch, as an evaluator or a worker does. */
  readonly expect: 'new' | 'resume' | 'join'
  readonly signal?: AbortSignal
  /**
   * Resuming after step n drops what older writers recorded of steps after n: it is played again. −1 drops all steps. A
   * checkpoint is kept when its weights have seen steps up to n only. Default: keep all.
   */
  readonly resumeAfterStep?: number
  /** Resume although the other writer seems alive; it is fenced. Default false. */
  readonly takeOver?: boolean
}

/**
 * Appends events. Equal content again is no second event. Readers fold: a newer epoch's event replaces the older one of the same
 * place, and an episode that a newer epoch played again is the newer one alone.
 */
export interface RunWriter {
  /** Counts up with each claim of the run, from 1. */
  readonly epoch: number
  /**
   * Accepts the event; resolves at once unless the writer is far behind. It is durable when `flush` resolves, or after a bounded
   * time. Rejects, without harm to other events, when the event can't be written down. Rejects too once the store said that a
   * newer writer has taken the run (StateError) or failed (StoreError); `flush` after a StoreError tries again.
   */
  append(event: RunEvent): Promise<void>
  /** Resolves when all that was appended is durable. @throws what the store said, naming what is missing. */
  flush(): Promise<void>
  /** Flushes and lets go. Idempotent. */
  close(): Promise<void>
}
