import { datumLength, trainedTokens, type Datum, type Learner } from '@tiltyard/core'

import { DEFAULT_EVERY, resolveCheckpoints, supervisedSteps } from '../config/defaults.ts'
import type { SupervisedConfig } from '../config/training.ts'
import { finiteMetrics, notFinite } from '../metrics/numbers.ts'
import { createLearningRate } from '../optimize/rate.ts'
import { issueUpdate, type UpdateResult } from '../optimize/update.ts'
import type { EvaluationReport, SupervisedReport, SupervisedResult, Warning } from '../report.ts'
import { createCheckpoints, type SavingCheckpoint } from '../run/checkpoints.ts'
import { orAborted } from '../run/ending.ts'
import type { Session } from '../run/session.ts'
import { addTotals, totalsFrom } from '../run/totals.ts'
import { batchIndices, meanNll, type ExampleData } from './examples.ts'
import { heldOutLoss } from './held-out.ts'

/** Steps whose calls may be made before the results of the one before are there. */
const STEPS_AHEAD = 1

export interface SupervisedParts {
  readonly config: SupervisedConfig
  readonly session: Session
  readonly learner: Learner
  readonly examples: readonly ExampleData[]
  readonly heldOut: readonly Datum[]
  /** Of the opening; they go into the first report. */
  readonly warnings: readonly Warning[]
}

export interface SupervisedSteps {
  /** One report per step, until the last or until the run is told to stop. */
  reports(): AsyncGenerator<SupervisedReport, void, undefined>
  /** Waits for what was begun, saves, evaluates the final weights when all steps are done, and says how it ended. */
  complete(): Promise<SupervisedResult>
  /** Steps that are recorded. */
  readonly done: number
}

/** Calls of a step that were made, in order. */
interface IssuedStep {
  readonly step: number
  readonly data: readonly Datum[]
  readonly learningRate: number
  readonly evaluation: Promise<EvaluationReport> | undefined
  readonly settled: Promise<UpdateResult>
  readonly saving: SavingCheckpoint | undefined
}

/** The steps of a supervised run. A step's calls are made while the one before is still being answered. */
export function createSupervisedSteps(parts: SupervisedParts): SupervisedSteps {
  const { config, session, learner, examples, heldOut } = parts
  const { opened, clock, control, seed, logger } = session
  const { writer } = opened
  const steps = supervisedSteps(config)
  const { evalEvery = DEFAULT_EVERY, tokensPerCall } = config
  const checkpoints = createCheckpoints({
    run: config.run,
    backend: config.backend,
    learner,
    writer,
    cadence: resolveCheckpoints(config.checkpoints),
    resumedFrom: opened.checkpoint,
    logger,
  })
  let totals = totalsFrom(opened.totals)
  const rate = createLearningRate(config.optimizer, { made: totals.optimizer_steps, total: steps })
  let warnings = parts.warnings
  let next = opened.from
  let done = opened.from
  let lastSaved = opened.checkpoint
  let since = clock.now()
  const issued: IssuedStep[] = []

  const evaluate = async (step: number): Promise<EvaluationReport> => {
    const start = clock.now()
    const values = finiteMetrics(await heldOutLoss(learner, heldOut, tokensPerCall))
    const timing = { 'time/evaluation': (clock.now() - start) / 1000 }
    const name = 'held_out'
    await writer.append({ type: 'metrics', split: 'eval', evaluation: name, step, values, timing })
    const report = { name, step, values, timing }
    session.notify({ type: 'evaluation', report })
    return report
  }

  const issue = (): IssuedStep => {
    const step = next
    next += 1
    const isDue = heldOut.length > 0 && evalEvery > 0 && step % evalEvery === 0
    const evaluation = isDue ? evaluate(step) : undefined
    evaluation?.catch(() => {})
    const { batchSize, order = 'shuffled' } = config
    const data = batchIndices(examples.length, batchSize, step, seed, order).flatMap(
      (index) => examples[index]!,
    )
    const { settled } = issueUpdate(learner, data, {
      loss: { name: 'cross_entropy' },
      tokensPerCall,
      updates: 1,
      adam: rate.next,
    })
    settled.catch(() => {})
    const kind = checkpoints.due(next)
    const saving = kind === undefined ? undefined : checkpoints.save(next, kind)
    saving?.sampler?.catch(() => {})
    return { step, data, learningRate: rate.last(), evaluation, settled, saving }
  }

  const finish = async (begun: IssuedStep): Promise<SupervisedReport> => {
    const { step, data } = begun
    const evaluations = begun.evaluation === undefined ? [] : [await begun.evaluation]
    const { loss, logprobs, metrics } = await begun.settled
    const checkpoint = await begun.saving?.event
    await (await begun.saving?.sampler)?.close()
    const tokens = data.reduce((sum, datum) => sum + datumLength(datum), 0)
    const trained = data.reduce((sum, datum) => sum + trainedTokens(datum), 0)
    const now = clock.now()
    const seconds = (now - since) / 1000
    since = now
    totals = addTotals(totals, { optimizer_steps: 1, trained_tokens: trained, seconds })
    const values = finiteMetrics({
      ...Object.fromEntries(
        Object.entries(metrics).map(([name, value]) => [`learner/${name}`, value]),
      ),
      'progress/batch': step,
      'progress/done_frac': (step + 1) / steps,
      'optim/lr': begun.learningRate,
      'optim/loss': loss,
      train_mean_nll: meanNll(data, logprobs),
      num_sequences: data.length,
      num_tokens: tokens,
      num_loss_tokens: trained,
      'totals/trained_tokens': totals.trained_tokens,
    })
    const timing = finiteMetrics({ 'time/total': seconds, 'rate/trained_tokens': tokens / seconds })
    await writer.append({ type: 'metrics', split: 'train', step, values, timing })
    const position = { epoch: Math.floor((step * config.batchSize) / examples.length), step }
    await writer.append({ type: 'step', step, position, totals: { ...totals } })
    if (checkpoint === undefined) await writer.flush()
    else {
      await checkpoints.record(checkpoint)
      lastSaved = checkpoint
    }
    done = step + 1
    const broken = notFinite(values)
    const own: readonly Warning[] =
      broken.length === 0
        ? []
        : [{ code: 'not_finite', message: `not finite: ${broken.join(', ')}` }]
    const report: SupervisedReport = {
      run: config.run,
      step,
      steps,
      values,
      timing,
      evaluations,
      ...(checkpoint === undefined ? {} : { checkpoint }),
      warnings: [...warnings, ...own],
    }
    for (const { code, message } of own) logger.warn(message, { code, step })
    warnings = []
    return report
  }

  const save = async (kind: 'full' | 'final') => {
    const saving = checkpoints.save(done, kind)
    const event = await saving.event
    await (await saving.sampler)?.close()
    await checkpoints.record(event)
    return event
  }

  return {
    get done() {
      return done
    },

    async *reports() {
      for (;;) {
        session.signal.throwIfAborted()
        const mayIssue = next < steps && control.stop?.aborted !== true
        if (mayIssue) issued.push(issue())
        if (!mayIssue && issued.length === 0) return
        if (mayIssue && issued.length <= STEPS_AHEAD) continue
        yield await orAborted(finish(issued.shift()!), session.signal)
      }
    },

    async complete() {
      for (let begun = issued.shift(); begun !== undefined; begun = issued.shift())
        await finish(begun)
      const completed = done >= steps
      const evaluated = completed && heldOut.length > 0 && evalEvery > 0 && !opened.finished
      const evaluations = evaluated ? [await evaluate(done)] : []
      const isFinal = completed && !opened.finished
      if (isFinal) lastSaved = await save('final')
      else if (!completed && done > (lastSaved?.step ?? 0)) lastSaved = await save('full')
      return {
        run: config.run,
        end: completed ? 'completed' : 'interrupted',
        steps: done,
        evaluations,
        ...(lastSaved === undefined ? {} : { checkpoint: lastSaved }),
      }
    },
  }
}
