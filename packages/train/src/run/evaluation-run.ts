import { ConfigError, type SamplerRef } from '@tiltyard/core'

import type { RunControl } from '../config/control.ts'
import type { TrainingConfig } from '../config/training.ts'
import type { EvaluationReport } from '../report.ts'
import { describeTraining } from './describe.ts'
import { createEnding, orAborted } from './ending.ts'
import { createEvaluations } from './evaluations.ts'
import { trainingFingerprints } from './identity.ts'
import { createPolicies } from './policies.ts'
import { checkAgainstBackend } from './preflight.ts'
import { rolloutOptions } from './rollout-options.ts'
import { openSession } from './session.ts'
import { createPreparation } from './sources.ts'

export interface EvaluateOptions {
  /** What is evaluated: a checkpoint, or a model as it is. */
  readonly of: SamplerRef
  /** Training steps that these weights have seen, for the record. */
  readonly step: number
}

/** Plays a training's evaluations once, as a run of their own. */
export async function evaluationRun(
  config: TrainingConfig,
  { of, step }: EvaluateOptions,
  control: RunControl,
): Promise<readonly EvaluationReport[]> {
  const { evaluations = [], backend, renderer } = config
  if (evaluations.length === 0) {
    throw new ConfigError('evaluation', [{ at: 'evaluations', message: 'the training has none' }])
  }
  const aborted = control.signal ?? new AbortController().signal
  const capabilities = await orAborted(backend.describe(), aborted)
  checkAgainstBackend(config, capabilities)
  const session = await openSession(config, control, {
    capabilities,
    fingerprints: trainingFingerprints(config),
    described: describeTraining(config),
    steps: undefined,
  })
  const { opened, clock, logger, seed, signal } = session
  const ending = createEnding(session)
  try {
    const sampler = await orAborted(backend.sampler(of), signal)
    const policies = createPolicies(sampler, step, { renderer, sampling: {}, logger })
    ending.closes(() => policies.close())
    const playing = createEvaluations({
      evaluations: evaluations.map((evaluation) => ({ ...evaluation, every: 1 })),
      evalEvery: 1,
      seed,
      rollout: rolloutOptions(config, session),
      writer: opened.writer,
      clock,
      logger,
      signal,
      prepare: createPreparation(renderer, config.rollout?.images, signal),
      onReport: (report) => session.notify({ type: 'evaluation', report }),
    })
    session.notify({ type: 'begin', run: config.run, from: step, resumed: false })
    playing.begin(step, () => policies.take(), true)
    return await playing.of(step)
  } catch (error) {
    await ending.failed(error, step)
    throw error
  } finally {
    await ending.settle(async () => ({ end: 'completed', steps: step }))
  }
}
