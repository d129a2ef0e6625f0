import type { CheckpointRef } from '@tiltyard/core'

import type { RunControl } from '../config/control.ts'
import type { TrainingConfig } from '../config/training.ts'
import type { SupervisedResult } from '../report.ts'
import { superviseRun } from '../supervised/supervised-run.ts'
import type { Session } from './session.ts'

/**
 * The supervised training that a run begins with: a run of its own, `<run>-warm-start`, which resumes by itself.
 * @returns its final weights, or undefined when it was told to stop.
 */
export async function warmStart(
  config: TrainingConfig,
  session: Session,
): Promise<CheckpointRef | undefined> {
  const { run, index, backend, model, adaptation, from, seed, renderer } = config
  const { control, opened } = session
  let result: SupervisedResult | undefined
  const reports = superviseRun(
    {
      run: `${run}-warm-start`,
      index,
      backend,
      model,
      renderer,
      ...(adaptation === undefined ? {} : { adaptation }),
      ...(from === undefined ? {} : { from }),
      ...(seed === undefined ? {} : { seed }),
      ...config.warmStart!,
    },
    warmStartControl(control, opened.resumed),
    (ended) => {
      result = ended
    },
  )
  for await (const report of reports) session.notify({ type: 'warm_start', report })
  return result?.end === 'completed' ? result.checkpoint?.training : undefined
}

/** As the run itself, except that its own beginning is not told. */
function warmStartControl(control: RunControl, resumed: boolean): RunControl {
  const { observer, start: _, ...rest } = control
  return {
    ...rest,
    start: resumed ? 'either' : 'new',
    ...(observer === undefined
      ? {}
      : {
          observer(event) {
            if (event.type !== 'begin') observer(event)
          },
        }),
  }
}
