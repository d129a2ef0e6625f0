import type { RunControl } from '../config/control.ts'
import { supervisedSteps } from '../config/defaults.ts'
import type { SupervisedConfig } from '../config/training.ts'
import type { SupervisedReport, SupervisedResult } from '../report.ts'
import { describeSupervised } from '../run/describe.ts'
import { createEnding, orAborted } from '../run/ending.ts'
import { supervisedFingerprints } from '../run/identity.ts'
import { checkModel } from '../run/preflight.ts'
import { openLearner, openSession, warnAtOpening, type Session } from '../run/session.ts'
import { renderExamples } from './examples.ts'
import { createSupervisedSteps, type SupervisedSteps } from './supervised-steps.ts'

/** A supervised run from its opening to its end. Left early it stops softly. */
export async function* superviseRun(
  config: SupervisedConfig,
  control: RunControl,
  onResult: (result: SupervisedResult) => void,
): AsyncGenerator<SupervisedReport, void, undefined> {
  const { session, ...rendered } = await open(config, control)
  const { from, resumed } = session.opened
  const ending = createEnding(session)
  let run: SupervisedSteps | undefined
  try {
    const { learner, warnings } = await ending.opens(openLearner(session, config.from), (it) =>
      it.learner.close(),
    )
    session.notify({ type: 'begin', run: config.run, from, resumed })
    const before = [...session.opened.warnings, ...warnings]
    warnAtOpening(session.logger, before)
    run = createSupervisedSteps({ config, session, learner, warnings: before, ...rendered })
    yield* run.reports()
  } catch (error) {
    await ending.failed(error, run?.done ?? from)
    throw error
  } finally {
    await ending.settle(async () => {
      if (run === undefined) return { end: 'interrupted', steps: from }
      const result = await run.complete()
      onResult(result)
      return result
    })
  }
}

async function open(config: SupervisedConfig, control: RunControl) {
  const signal = control.signal ?? new AbortController().signal
  const capabilities = await orAborted(config.backend.describe(), signal)
  checkModel(config, capabilities)
  const rendering = {
    renderer: config.renderer,
    trainOn: config.trainOn ?? 'all_assistant_messages',
    weighting: config.weighting ?? 'example',
    contextWindow: capabilities.models.find(({ name }) => name === config.model)?.contextWindow,
  } as const
  const examples = renderExamples(config.examples, rendering, 'examples')
  const heldOut = renderExamples(config.heldOut ?? [], rendering, 'heldOut').flat()
  const session: Session = await openSession(config, control, {
    capabilities,
    fingerprints: supervisedFingerprints(config),
    described: describeSupervised(config),
    steps: supervisedSteps(config),
  })
  return { session, examples, heldOut }
}
