import type { CheckpointEvent, JsonValue, RunEvent } from '@tiltyard/core'

import type { PolicyLoss } from '../config/options.ts'
import { episodeMetrics } from '../metrics/episodes.ts'
import { finiteMetrics, spread } from '../metrics/numbers.ts'
import { updateMetrics, type TrainedData } from '../metrics/updates.ts'
import { stepWarnings } from '../metrics/warnings.ts'
import type { SchedulePosition } from '../pipeline/schedule.ts'
import type { FinishedStep } from '../pipeline/work.ts'
import type { EvaluationReport, Metrics, StepReport, Warning } from '../report.ts'
import {
  groupCounts,
  groupEvents,
  groupReport,
  type EpisodeData,
  type TrainingGroup,
} from './groups.ts'
import { addTotals, type Totals } from './totals.ts'

/** A part of a step after its updates. */
export interface TrainedPart extends TrainedData {
  readonly episodes: readonly EpisodeData[]
  /** The metric `kl_policy_base`, when there is a reference. */
  readonly klBase?: number
}

export type Finished = FinishedStep<TrainingGroup, TrainedPart>

/** Facts about a step that its parts do not hold. */
export interface StepContext {
  readonly run: string
  readonly steps: number | undefined
  readonly loss: PolicyLoss
  readonly onPolicy: boolean
  /** Whether the trained advantages differ from one token of an episode to another. */
  readonly perToken: boolean
  readonly learningRate: number | undefined
  /** Groups that were too old when their turn came. */
  readonly stale: readonly TrainingGroup[]
  readonly totals: Totals
  /** Of the new weights against the old, when measured. */
  readonly update?: { readonly v1: number; readonly v2: number } | undefined
  readonly dataset: JsonValue
  readonly timing: Readonly<Record<string, number>>
  readonly evaluations: readonly EvaluationReport[]
  readonly checkpoint: CheckpointEvent | undefined
  /** Warnings that came up outside the step. */
  readonly warnings: readonly Warning[]
}

/** A step's numbers, all but the times. */
export function stepValues(finished: Finished, context: StepContext, totals: Totals): Metrics {
  const { step, groups, results } = finished
  const { steps, loss, learningRate, update, stale } = context
  const played = groups.map(({ group }) => group.played)
  const trained = groups.filter(({ usable }) => usable)
  const versions = trained.flatMap(({ group }) =>
    group.played.episodes.flatMap(({ replies }) =>
      replies.slice(0, 1).map(({ version }) => version.step),
    ),
  )
  const lags = trained.map(({ version }) => step - version)
  const klBase = results.find((part) => part.klBase !== undefined)?.klBase
  return finiteMetrics({
    'progress/batch': step,
    ...(steps === undefined ? {} : { 'progress/done_frac': (step + 1) / steps }),
    'optim/updates': finished.updates,
    ...(learningRate === undefined ? {} : { 'optim/lr': learningRate }),
    ...groupCounts(
      groups.map(({ group }) => group),
      stale.length,
    ),
    ...episodeMetrics(played),
    ...updateMetrics(results, loss),
    ...spread('sampling_client/step', versions),
    ...spread('staleness/steps', lags),
    ...(klBase === undefined ? {} : { kl_policy_base: klBase }),
    ...(update === undefined ? {} : { kl_pre_post_v1: update.v1, kl_pre_post_v2: update.v2 }),
    'totals/episodes': totals.episodes,
    'totals/sampled_tokens': totals.sampled_tokens,
    'totals/trained_tokens': totals.trained_tokens,
    'totals/optimizer_steps': totals.optimizer_steps,
  })
}

/** What a step adds to the sums. */
function totalsOfStep(finished: Finished, stale: readonly TrainingGroup[]): Partial<Totals> {
  const episodes = [...finished.groups.map(({ group }) => group), ...stale].flatMap(
    ({ played }) => played.episodes,
  )
  const replies = episodes.flatMap((episode) => episode.replies)
  return {
    optimizer_steps: finished.updates,
    episodes: episodes.length,
    sampled_tokens: replies.reduce((sum, { sample }) => sum + sample.ids.length, 0),
    trained_tokens: finished.results
      .flatMap(({ data }) => data)
      .reduce((sum, { trained }) => sum + trained, 0),
  }
}

/** Everything that a step leaves in the record, in the order in which it is written; the checkpoint comes after. */
export function stepEvents(
  finished: Finished,
  context: StepContext,
  values: Metrics,
  totals: Totals,
): readonly RunEvent[] {
  const { step, groups, results, position } = finished
  const trained = new Map(
    results.flatMap(({ episodes }) => episodes.map((each) => [each.episode, each])),
  )
  const { perToken, stale } = context
  return [
    ...groups.flatMap(({ group }) => groupEvents(group, step, trained, { perToken })),
    ...stale.flatMap((group) =>
      groupEvents(group, step, trained, { perToken, untrained: 'stale' }),
    ),
    { type: 'metrics', split: 'train', step, values, timing: finiteMetrics(context.timing) },
    {
      type: 'step',
      step,
      position: recordedPosition(context.dataset, position),
      totals: { ...totals },
    },
  ]
}

export function stepReport(finished: Finished, context: StepContext, values: Metrics): StepReport {
  const { step, groups, updates } = finished
  const { run, steps, checkpoint, evaluations } = context
  const reports = groups.map(({ group }) => groupReport(group))
  const warnings = stepWarnings({
    step,
    groups: groups.map(({ group }) => group.played),
    constant: reports.filter(({ untrained }) => untrained === 'constant').length,
    trained: reports.filter(({ untrained }) => untrained === undefined).length,
    updates,
    values,
    onPolicy: context.onPolicy,
  })
  return {
    run,
    step,
    ...(steps === undefined ? {} : { steps }),
    updates,
    values,
    timing: finiteMetrics(context.timing),
    groups: [...reports, ...context.stale.map((group) => groupReport(group, 'stale'))],
    evaluations,
    ...(checkpoint === undefined ? {} : { checkpoint }),
    warnings: [...context.warnings, ...warnings],
  }
}

export function nextTotals(
  finished: Finished,
  context: Pick<StepContext, 'stale' | 'totals'>,
): Totals {
  return addTotals(context.totals, totalsOfStep(finished, context.stale))
}

function recordedPosition(
  dataset: JsonValue,
  { nextBatch, unfinished }: SchedulePosition,
): JsonValue {
  return {
    dataset,
    nextBatch,
    ...(unfinished.length === 0
      ? {}
      : { unfinished: unfinished.map(({ batch, group }) => [batch, group]) }),
  }
}

/** The inverse of what `stepEvents` recorded; undefined when there is nothing of the kind. */
export function positionFrom(recorded: JsonValue | undefined): SchedulePosition | undefined {
  if (typeof recorded !== 'object' || recorded === null || !('nextBatch' in recorded))
    return undefined
  const { nextBatch, unfinished = [] } = recorded as {
    readonly nextBatch: number
    readonly unfinished?: readonly (readonly [number, number])[]
  }
  return { nextBatch, unfinished: unfinished.map(([batch, group]) => ({ batch, group })) }
}
