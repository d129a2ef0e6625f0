import {
  deriveSeed,
  type Clock,
  type Dataset,
  type GroupPlan,
  type Logger,
  type PolicyHandle,
  type RunWriter,
} from '@tiltyard/core'
import {
  playGroup,
  rolloutErrors,
  type PlayedGroup,
  type PolicyLease,
  type RolloutOptions,
} from '@tiltyard/rollout'

import type { CustomEvaluation, Evaluation, RolloutEvaluation } from '../config/options.ts'
import { episodeMetrics } from '../metrics/episodes.ts'
import { finiteMetrics } from '../metrics/numbers.ts'
import type { EvaluationReport } from '../report.ts'

/** Evaluations of fixed policies, beside the training. */
export interface Evaluations {
  /** Begins those that are due for the weights of so many steps; each runs once for a step. `final` ones are due always. */
  begin(step: number, take: () => PolicyLease, final?: boolean): void
  /** Their results, in the order of the configuration. Rejects with what failed. */
  of(step: number): Promise<readonly EvaluationReport[]>
}

export interface EvaluationsOptions {
  readonly evaluations: readonly Evaluation[]
  readonly evalEvery: number
  readonly seed: number
  readonly rollout: Omit<RolloutOptions, 'policy' | 'seed' | 'signal'>
  readonly writer: RunWriter
  readonly clock: Clock
  readonly logger: Logger
  readonly signal: AbortSignal
  /** Called once for each source, before it is played. */
  readonly prepare: (plans: readonly GroupPlan[]) => Promise<void>
  readonly onReport: (report: EvaluationReport) => void
}

export function createEvaluations(options: EvaluationsOptions): Evaluations {
  const { evaluations, evalEvery, writer, clock } = options
  const results = new Map<number, Map<string, Promise<EvaluationReport>>>()

  const isDue = ({ every = evalEvery }: Evaluation, step: number, final: boolean) =>
    every > 0 && (final || step % every === 0)

  const run = async (
    evaluation: Evaluation,
    step: number,
    take: () => PolicyLease,
  ): Promise<EvaluationReport> => {
    const lease = take()
    const start = clock.now()
    try {
      const result =
        'dataset' in evaluation
          ? await evaluateByPlay(evaluation, step, lease.policy, options)
          : await evaluateByFunction(evaluation, step, lease.policy, options)
      const values = finiteMetrics(result)
      const timing = { 'time/evaluation': (clock.now() - start) / 1000 }
      const { name } = evaluation
      await writer.append({
        type: 'metrics',
        split: 'eval',
        evaluation: name,
        step,
        values,
        timing,
      })
      const report = { name, step, values, timing }
      options.onReport(report)
      return report
    } finally {
      lease.release()
    }
  }

  return {
    begin(step, take, final = false) {
      const running = results.get(step) ?? new Map<string, Promise<EvaluationReport>>()
      results.set(step, running)
      for (const evaluation of evaluations) {
        if (running.has(evaluation.name) || !isDue(evaluation, step, final)) continue
        const report = run(evaluation, step, take)
        report.catch(() => {})
        running.set(evaluation.name, report)
      }
    },
    async of(step) {
      return await Promise.all(Array.from(results.get(step)?.values() ?? []))
    },
  }
}

async function evaluateByPlay(
  { name, dataset, sampling = {}, limits }: RolloutEvaluation,
  step: number,
  policy: PolicyHandle,
  { rollout, seed, signal, prepare }: EvaluationsOptions,
): Promise<Readonly<Record<string, number>>> {
  const plans = await allPlans(dataset, seed)
  await prepare(plans)
  const groups = await Promise.all(
    plans.map((plan, group) =>
      playGroup(
        plan,
        { split: 'eval', evaluation: name, step, group },
        {
          ...rollout,
          ...(limits === undefined ? {} : { limits }),
          policy: { ...policy, sampling },
          seed,
          signal,
          recordGroup: true,
        },
      ),
    ),
  )
  return evaluationMetrics(groups)
}

/**
 * What a play of an evaluation's tasks came to: the numbers of the episodes, what failed, and `groups/passed_frac`, the share of
 * all groups with a reward above 0; a dropped group did not pass.
 */
function evaluationMetrics(groups: readonly PlayedGroup[]): Readonly<Record<string, number>> {
  const usable = groups.filter(({ dropped }) => dropped === undefined)
  const passed = usable.filter(({ episodes }) =>
    episodes.some(({ reward }) => 'reward' in reward && reward.reward > 0),
  )
  return {
    ...episodeMetrics(usable),
    'groups/played': groups.length,
    'groups/dropped': groups.length - usable.length,
    ...rolloutErrors(groups),
    ...(groups.length === 0 ? {} : { 'groups/passed_frac': passed.length / groups.length }),
  }
}

async function allPlans(dataset: Dataset, seed: number): Promise<readonly GroupPlan[]> {
  const plans: GroupPlan[] = []
  for (let batch = 0; batch < (dataset.batches ?? 0); batch += 1)
    plans.push(...((await dataset.batch(batch, seed)) ?? []))
  return plans
}

async function evaluateByFunction(
  evaluation: CustomEvaluation,
  step: number,
  { sampler, renderer }: PolicyHandle,
  { seed, signal, logger }: EvaluationsOptions,
): Promise<Readonly<Record<string, number>>> {
  return await evaluation.evaluate({
    sampler,
    renderer,
    step,
    seed: deriveSeed(seed, 'evaluation', evaluation.name, step),
    signal,
    logger,
  })
}
