import {
  TiltyardError,
  type CheckpointEvent,
  type GroupPlan,
  type Learner,
  type Sampler,
} from '@tiltyard/core'
import { playGroup, type RolloutOptions } from '@tiltyard/rollout'

import { resolveLoss, resolvePipeline } from '../config/defaults.ts'
import type { TrainingConfig } from '../config/training.ts'
import type { PolicyDatum } from '../data/assemble.ts'
import { judgeGroup } from '../data/prepare.ts'
import { logprobGap } from '../objective/kl.ts'
import { createLearningRate } from '../optimize/rate.ts'
import { issueUpdate } from '../optimize/update.ts'
import type { GroupRef } from '../pipeline/composer.ts'
import type { PipelineWork } from '../pipeline/work.ts'
import type { StepReport, Warning } from '../report.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Evaluations } from './evaluations.ts'
import {
  nextTotals,
  stepEvents,
  stepReport,
  stepValues,
  type StepContext,
  type TrainedPart,
} from './finish.ts'
import type { TrainingGroup } from './groups.ts'
import {
  addKlPenalties,
  assembleGroups,
  scaleByLength,
  scoreDatum,
  wireDatum,
} from './objective.ts'
import type { Policies } from './policies.ts'
import type { Session } from './session.ts'
import type { Timing } from './timing.ts'
import { addTotals, totalsFrom } from './totals.ts'

export interface TrainingParts {
  readonly config: TrainingConfig
  readonly session: Session
  readonly steps: number | undefined
  readonly learner: Learner
  readonly policies: Policies
  /** Of the KL penalty. */
  readonly reference: Sampler | undefined
  readonly checkpoints: Checkpoints
  readonly evaluations: Evaluations
  readonly rollout: Omit<RolloutOptions, 'policy' | 'signal'>
  readonly prepare: (plans: readonly GroupPlan[]) => Promise<void>
  readonly timing: Timing
  /** Of the opening; they go into the first report. */
  readonly warnings: readonly Warning[]
}

export interface TrainingWork extends Omit<
  PipelineWork<GroupPlan, TrainingGroup, TrainedPart, StepReport>,
  'schedule'
> {
  /** The newest checkpoint that was recorded. */
  lastSaved(): CheckpointEvent | undefined
  /** Groups that were played and belong to no step. */
  unused(): readonly TrainingGroup[]
}

/** What the pipeline moves in a reinforcement training. */
export function createTrainingWork(parts: TrainingParts): TrainingWork {
  const { config, session, learner, policies, checkpoints, evaluations, timing } = parts
  const { logger, opened, signal } = session
  const { writer } = opened
  const pipeline = resolvePipeline(config.pipeline)
  const loss = resolveLoss(config)
  const { length = 'sum' } = config.advantages ?? {}
  const optimizer = createLearningRate(config.optimizer, {
    made: totalsFrom(opened.totals).optimizer_steps,
    total: parts.steps === undefined ? undefined : parts.steps * pipeline.substeps,
  })
  let totals = totalsFrom(opened.totals)
  let warnings = parts.warnings
  let stale: TrainingGroup[] = []
  const unused: TrainingGroup[] = []
  let pending = false
  /** Steps in a row that trained nothing. */
  let skipped = 0
  let saving: Promise<CheckpointEvent> | undefined
  let lastSaved = opened.checkpoint
  const startedIn = new Map<number, number>()
  const done = new Map<number, number>()

  /** Planned groups are filed under their batch; others under the step in which they begin, counted through. */
  const placeOf = (ref: GroupRef) => {
    if (pipeline.groupsPerStep === undefined) return { step: ref.batch, group: ref.group }
    const step = policies.version
    const group = startedIn.get(step) ?? 0
    startedIn.set(step, group + 1)
    return { step, group }
  }

  return {
    async read(batch) {
      const plans = await config.dataset.batch(batch, session.seed)
      if (plans !== undefined) await parts.prepare(plans)
      return plans
    },

    async play(plan, ref, playSignal) {
      let version = Infinity
      const key = { split: 'train' as const, ...placeOf(ref) }
      timing.sampling.enter()
      try {
        const played = await playGroup(plan, key, {
          ...parts.rollout,
          recordGroup: false,
          signal: playSignal,
          policy() {
            version = Math.min(version, policies.version)
            return policies.take()
          },
        })
        const judged = judgeGroup(played, {
          ...config.advantages,
          keepConstantGroups: config.keepConstantGroups,
        })
        done.set(key.step, (done.get(key.step) ?? 0) + 1)
        session.notify({ type: 'group', step: key.step, done: done.get(key.step)! })
        return {
          group: { played, judged },
          version: Math.min(version, policies.version),
          usable: judged.untrained === undefined,
        }
      } finally {
        timing.sampling.leave()
      }
    },

    async train({ groups, updates }) {
      const episodes = await timing.spans.measure('assemble_training_data', () =>
        assembleGroups(
          groups.map(({ group }) => group),
          session.clock,
        ),
      )
      const data = episodes.flatMap((episode) => episode.data)
      const klBase =
        parts.reference === undefined || config.kl === undefined
          ? undefined
          : await timing.spans.measure('kl_vs_base', () =>
              addKlPenalties(data, parts.reference!, config.kl!, signal),
            )
      for (const episode of episodes) scaleByLength(episode, length)
      const issued = issueUpdate(
        learner,
        data.map((datum) => wireDatum(datum, session.capabilities.mask)),
        { loss, tokensPerCall: config.tokensPerCall, updates, adam: optimizer.next, pending },
      )
      pending = updates === 0 && (pending || data.length > 0)
      timing.learning.enter()
      const settled = issued.settled
        .then((result) => ({ data, episodes, result, ...(klBase === undefined ? {} : { klBase }) }))
        .finally(() => timing.learning.leave())
      return { updates: issued.updates, settled }
    },

    async publish(step, updates) {
      const version = step + 1
      const kind = checkpoints.due(version)
      const saved = kind === undefined ? undefined : checkpoints.save(version, kind)
      saving = saved?.event
      timing.learning.enter()
      try {
        if (saved?.sampler !== undefined) policies.move(await saved.sampler, version)
        else if (updates === 0) policies.keep(version)
        else
          policies.move(
            await timing.spans.measure('publish', () => learner.publish({ step: version })),
            version,
          )
      } finally {
        timing.learning.leave()
      }
      if (version !== parts.steps) evaluations.begin(version, () => policies.take())
    },

    async finish(finished) {
      const { step, groups, results } = finished
      const checkpointing = saving
      const tooOld = stale
      stale = []
      done.delete(step)
      const finishedTotals = nextTotals(finished, { stale: tooOld, totals })
      const update =
        config.measureUpdate === true
          ? await timing.spans.measure('compute_post_kl', () =>
              measureMove(
                results.flatMap(({ data }) => data),
                policies.sampler,
                signal,
              ),
            )
          : undefined
      const evaluated = await timing.spans.measure('evaluations', () => evaluations.of(step))
      const checkpoint = await checkpointing
      const { seconds, metrics } = timing.take({
        groupSeconds: groups.map(({ group }) => group.played.ms / 1000),
        sampledTokens: finishedTotals.sampled_tokens - totals.sampled_tokens,
        trainedTokens: results
          .flatMap(({ data }) => data)
          .reduce((sum, { mask }) => sum + mask.length, 0),
        slotsPeak: parts.rollout.slots.peak,
      })
      const context: StepContext = {
        run: config.run,
        steps: parts.steps,
        loss,
        onPolicy: pipeline.maxStaleness === 0 && finished.updates === 1,
        perToken: config.kl !== undefined || length !== 'sum',
        learningRate: finished.updates === 0 ? undefined : optimizer.last(),
        stale: tooOld,
        totals,
        update,
        dataset: config.dataset.position(step),
        timing: metrics,
        evaluations: evaluated,
        checkpoint,
        warnings,
      }
      totals = addTotals(finishedTotals, { seconds })
      warnings = []
      const values = stepValues(finished, context, totals)
      for (const event of stepEvents(finished, context, values, totals)) await writer.append(event)
      if (checkpoint === undefined) await writer.flush()
      else {
        await checkpoints.record(checkpoint)
        lastSaved = checkpoint
      }
      const report = stepReport(finished, context, values)
      const own = report.warnings.slice(context.warnings.length)
      for (const { message, code } of own) logger.warn(message, { code, step })
      skipped = finished.updates > 0 ? 0 : skipped + 1
      if (skipped >= (config.maxSkippedSteps ?? Infinity) && step + 1 !== parts.steps)
        throw nothingToTrain(skipped, report.warnings)
      return report
    },

    discard({ group }, _, why) {
      if (why === 'stale') stale.push(group)
      else unused.push(group)
    },

    lastSaved: () => lastSaved,
    unused: () => unused,
  }
}

function nothingToTrain(steps: number, warnings: readonly Warning[]): TiltyardError {
  const why = warnings.map(({ message }) => message).join('; ')
  return new TiltyardError(
    'NOTHING_TO_TRAIN',
    `${steps} steps in a row had nothing to train, so that the weights stand still (maxSkippedSteps): ${why}`,
  )
}

/** How far the new weights moved on the tokens that they were trained on. */
async function measureMove(data: readonly PolicyDatum[], sampler: Sampler, signal: AbortSignal) {
  const scored = await Promise.all(data.map((datum) => scoreDatum(datum, sampler, signal)))
  return logprobGap(data, scored)
}
