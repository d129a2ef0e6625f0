import { UnsupportedError } from '@tiltyard/core'

import type { RunControl } from './config/control.ts'
import type { SupervisedTraining, Training } from './config/training.ts'
import type { StepReport, SupervisedReport } from './report.ts'

/**
 * Runs a training: one report per step, each announced after its records are durable. Leaving the loop early stops the run
 * softly, as `control.stop` does.
 * @throws what ended the run: the cause of the first failure, or the signal's reason.
 */
export function train(_training: Training, _control: RunControl = {}): AsyncIterable<StepReport> {
  throw new UnsupportedError('train is being written')
}

/** Runs a supervised training, as `train` does. */
export function supervise(
  _training: SupervisedTraining,
  _control: RunControl = {},
): AsyncIterable<SupervisedReport> {
  throw new UnsupportedError('supervise is being written')
}
