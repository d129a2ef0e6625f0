import { ConfigError, type GroupPlan, type Learner, type Sampler } from '@tiltyard/core'

import type { RunControl } from '../config/control.ts'
import { DEFAULT_EVERY, resolveCheckpoints, resolvePipeline } from '../config/defaults.ts'
import type { TrainingConfig } from '../config/training.ts'
import { runPipeline } from '../pipeline/pipeline.ts'
import { createSchedule } from '../pipeline/schedule.ts'
import type { PipelineEnd } from '../pipeline/work.ts'
import type { StepReport, TrainingResult } from '../report.ts'
import { createCheckpoints, type Checkpoints } from './checkpoints.ts'
import { completeTraining, type OpenTraining } from './complete.ts'
import { describeTraining } from './describe.ts'
import { createEnding, orAborted, type Ending } from './ending.ts'
import { createEvaluations } from './evaluations.ts'
import { positionFrom } from './finish.ts'
import { trainingFingerprints } from './identity.ts'
import { createPolicies } from './policies.ts'
import { checkAgainstBackend, checkDivides, stepsOf } from './preflight.ts'
import { rolloutOptions } from './rollout-options.ts'
import { openLearner, openSession, warnAtOpening, type Session } from './session.ts'
import { createPreparation } from './sources.ts'
import { createTiming } from './timing.ts'
import { createTrainingWork } from './training-work.ts'
import { warmStart } from './warm-start.ts'

type Prepare = (plans: readonly GroupPlan[]) => Promise<void>

/** A reinforcement training from its opening to its end. Left early it stops softly. */
export async function* trainingRun(
  config: TrainingConfig,
  control: RunControl,
  onResult: (result: TrainingResult) => void,
): AsyncGenerator<StepReport, void, undefined> {
  const { session, steps, prepare } = await begin(config, control)
  const ending = createEnding(session)
  const left = new AbortController()
  const stop =
    control.stop === undefined ? left.signal : AbortSignal.any([control.stop, left.signal])
  let training: OpenTraining | undefined
  let reports: AsyncGenerator<StepReport, PipelineEnd, undefined> | undefined
  let end: PipelineEnd | undefined
  try {
    training = await openTraining(config, session, { steps, prepare, ending })
    if (training === undefined) return
    reports = runPipeline(
      { ...training.work, schedule: training.schedule },
      { signal: session.signal, stop, clock: session.clock },
    )
    for (let next = await reports.next(); ; next = await reports.next()) {
      if (next.done === true) {
        end = next.value
        return
      }
      yield next.value
    }
  } catch (error) {
    await ending.failed(error, training?.schedule.step ?? session.opened.from)
    throw error
  } finally {
    await ending.settle(async () => {
      left.abort()
      // Whoever left the loop hears no more of it, but what was begun is brought to an end.
      if (reports !== undefined) end ??= await drained(reports)
      const result = await completeTraining(config, session, training, end)
      onResult(result)
      return result
    })
  }
}

async function drained(
  reports: AsyncGenerator<unknown, PipelineEnd, undefined>,
): Promise<PipelineEnd> {
  for (;;) {
    const { done, value } = await reports.next()
    if (done === true) return value
  }
}

/** Checks all that can be checked before the run is claimed, then claims it. */
async function begin(config: TrainingConfig, control: RunControl) {
  const steps = stepsOf(config)
  const signal = control.signal ?? new AbortController().signal
  const capabilities = await orAborted(config.backend.describe(), signal)
  checkAgainstBackend(config, capabilities)
  const prepare = createPreparation(config.renderer, config.rollout?.images, signal)
  const first = await config.dataset.batch(0, config.seed ?? 0)
  if (first === undefined) {
    throw new ConfigError('training', [
      { at: 'dataset', message: `the dataset ${config.dataset.name} has no batch` },
    ])
  }
  checkDivides(first.length, config)
  await prepare(first)
  const session = await openSession(config, control, {
    capabilities,
    fingerprints: trainingFingerprints(config),
    described: describeTraining(config),
    steps,
  })
  return { session, steps, prepare }
}

/** Opens what a run works with; undefined when it was told to stop before its first step. */
async function openTraining(
  config: TrainingConfig,
  session: Session,
  {
    steps,
    prepare,
    ending,
  }: { readonly steps: number | undefined; readonly prepare: Prepare; readonly ending: Ending },
): Promise<OpenTraining | undefined> {
  const { opened, clock, logger, seed, signal } = session
  const { from, resumed, writer } = opened
  const isWarm = config.warmStart !== undefined && opened.checkpoint === undefined
  const start = isWarm ? await warmStart(config, session) : config.from
  if (isWarm && start === undefined) return undefined
  const { learner, warnings } = await ending.opens(openLearner(session, start), (open) =>
    open.learner.close(),
  )
  warnAtOpening(logger, [...opened.warnings, ...warnings])

  const pipeline = resolvePipeline(config.pipeline)
  const checkpoints = createCheckpoints({
    run: config.run,
    backend: config.backend,
    learner,
    writer,
    cadence: resolveCheckpoints(config.checkpoints, pipeline.maxStaleness > 0),
    resumedFrom: opened.checkpoint,
    logger,
  })
  const sampler = await orAborted(firstSampler(opened, learner, checkpoints), signal)
  const policies = createPolicies(sampler, from, {
    renderer: config.renderer,
    sampling: config.sampling ?? {},
    logger,
  })
  ending.closes(() => policies.close())
  const reference: Sampler | undefined =
    config.kl === undefined
      ? undefined
      : await ending.opens(config.backend.sampler(config.kl.reference), (open) => open.close())

  const timing = createTiming(clock)
  ending.closes(async () => timing.stop())
  const rollout = rolloutOptions(config, session, timing.late)
  const evaluations = createEvaluations({
    evaluations: config.evaluations ?? [],
    evalEvery: config.evalEvery ?? DEFAULT_EVERY,
    seed,
    rollout,
    writer,
    clock,
    logger,
    signal,
    prepare,
    onReport: (report) => session.notify({ type: 'evaluation', report }),
  })
  const work = createTrainingWork({
    config,
    session,
    steps,
    learner,
    policies,
    reference,
    checkpoints,
    evaluations,
    rollout,
    prepare,
    timing,
    warnings: [...opened.warnings, ...warnings],
  })
  const schedule = createSchedule({
    ...pipeline,
    steps,
    from,
    position: positionFrom(opened.position),
  })
  session.notify({ type: 'begin', run: config.run, from, resumed })
  if (from !== steps) evaluations.begin(from, () => policies.take())
  return { work, schedule, policies, checkpoints, evaluations }
}

/** Of the weights that the run begins with, saved first when that is due. */
async function firstSampler(
  { checkpoint, from }: Session['opened'],
  learner: Learner,
  checkpoints: Checkpoints,
): Promise<Sampler> {
  const kind = checkpoint === undefined ? checkpoints.due(0) : undefined
  const saving = kind === undefined ? undefined : checkpoints.save(0, kind)
  const published = await (saving?.sampler ?? learner.publish({ step: from }))
  if (saving !== undefined) await checkpoints.record(await saving.event)
  return published
}
