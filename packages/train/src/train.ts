import type { RunControl } from './config/control.ts'
import type { SupervisedTraining, Training, Whereabouts } from './config/training.ts'
import type {
  EvaluationReport,
  StepReport,
  SupervisedReport,
  SupervisedResult,
  TrainingResult,
} from './report.ts'
import { evaluationRun, type EvaluateOptions } from './run/evaluation-run.ts'
import { trainingRun } from './run/training-run.ts'
import { superviseRun } from './supervised/supervised-run.ts'

/** A run of a training, for one reader. Nothing happens before the first report is asked for. */
export interface Run<Report, Result> extends AsyncIterable<Report> {
  /** Goes on to the end without giving reports, and says how it ended. Rejects as the loop would throw. */
  finish(): Promise<Result>
}

/**
 * Runs a training: one report per step, each given after its records are durable.
 *
 *     const run = train(training)
 *     for await (const { step, values } of run) console.log(step, values['env/all/reward/total'])
 *     const { evaluations, checkpoint } = await run.finish()
 *
 * Leaving the loop early stops the run softly, as `control.stop` does. The backend and the run index stay open; they are whose made them.
 * @throws what ended the run: the cause of the first failure, or the signal's reason.
 */
export function train(
  { config }: Training,
  control: RunControl = {},
): Run<StepReport, TrainingResult> {
  speak(config, control)
  return runOf((onResult) => trainingRun(config, control, onResult))
}

/** Runs a supervised training, as `train` does. */
export function supervise(
  { config }: SupervisedTraining,
  control: RunControl = {},
): Run<SupervisedReport, SupervisedResult> {
  speak(config, control)
  return runOf((onResult) => superviseRun(config, control, onResult))
}

/**
 * Plays a training's evaluations once for a checkpoint or a model. The plays are recorded under `config.run`, which must be a
 * new name (or `control.start` say otherwise); nothing is trained.
 * @throws as `train`.
 */
export function evaluate(
  { config }: Training,
  options: EvaluateOptions,
  control: RunControl = {},
): Promise<readonly EvaluationReport[]> {
  speak(config, control)
  return evaluationRun(config, options, control)
}

/** What the backend has to say is said where the run logs. */
function speak({ backend }: Whereabouts, { logger }: RunControl): void {
  if (logger !== undefined) backend.logTo?.(logger)
}

function runOf<Report, Result>(
  begin: (onResult: (result: Result) => void) => AsyncGenerator<Report, void, undefined>,
): Run<Report, Result> {
  let ended: { readonly result: Result } | undefined
  const reports = begin((result) => {
    ended = { result }
  })
  return {
    [Symbol.asyncIterator]: () => reports,
    async finish() {
      let next = await reports.next()
      while (next.done !== true) next = await reports.next()
      if (ended === undefined) throw new Error('the run failed before; its loop threw the cause')
      return ended.result
    },
  }
}
