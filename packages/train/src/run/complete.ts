import type { CheckpointEvent } from '@tiltyard/core'

import type { TrainingConfig } from '../config/training.ts'
import type { Schedule } from '../pipeline/schedule.ts'
import type { PipelineEnd } from '../pipeline/work.ts'
import type { TrainingResult } from '../report.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Evaluations } from './evaluations.ts'
import { groupEvents } from './groups.ts'
import type { Policies } from './policies.ts'
import type { Session } from './session.ts'
import type { TrainingWork } from './training-work.ts'

/** A run that is under way. */
export interface OpenTraining {
  readonly work: TrainingWork
  readonly schedule: Schedule
  readonly policies: Policies
  readonly checkpoints: Checkpoints
  readonly evaluations: Evaluations
}

/**
 * After the last step: saves the final weights and evaluates them. After a stop: saves the weights of the last whole step.
 */
export async function completeTraining(
  config: TrainingConfig,
  { opened }: Session,
  training: OpenTraining | undefined,
  end: PipelineEnd | undefined,
): Promise<TrainingResult> {
  const { run } = config
  if (training === undefined || end === undefined) {
    const { from: steps } = opened
    return { run, end: 'interrupted', steps, batches: steps, evaluations: [] }
  }
  const { work, policies, checkpoints, evaluations } = training
  const { steps } = end
  for (const group of work.unused()) {
    const options = { untrained: 'unused', perToken: false }
    for (const event of groupEvents(group, steps, new Map(), options))
      await opened.writer.append(event)
  }
  const result = { run, steps, batches: end.position.nextBatch }
  const last = work.lastSaved()
  if (end.reason === 'stopped') {
    const checkpoint = steps > (last?.step ?? 0) ? await save(checkpoints, steps, 'full') : last
    return { ...result, end: 'interrupted', evaluations: [], ...withCheckpoint(checkpoint) }
  }
  if (opened.finished)
    return { ...result, end: 'completed', evaluations: [], ...withCheckpoint(last) }
  const checkpoint = isFull(last, steps)
    ? await recordAsFinal(checkpoints, last)
    : await save(checkpoints, steps, 'final')
  evaluations.begin(steps, () => policies.take(), true)
  const evaluated = await evaluations.of(steps)
  return { ...result, end: 'completed', evaluations: evaluated, ...withCheckpoint(checkpoint) }
}

async function save(
  checkpoints: Checkpoints,
  steps: number,
  kind: 'full' | 'final',
): Promise<CheckpointEvent> {
  const { sampler, event } = checkpoints.save(steps, kind)
  const saved = await event
  await (await sampler)?.close()
  await checkpoints.record(saved)
  return saved
}

/** The weights were saved in full after the last step: the final record names the same parts. */
async function recordAsFinal(
  checkpoints: Checkpoints,
  last: CheckpointEvent,
): Promise<CheckpointEvent> {
  if (last.final === true) return last
  const { deleted: _, ...saved } = last
  const event: CheckpointEvent = { ...saved, name: 'final', final: true }
  await checkpoints.record(event)
  return event
}

function isFull(event: CheckpointEvent | undefined, steps: number): event is CheckpointEvent {
  return event?.step === steps && event.training !== undefined && event.sampling !== undefined
}

function withCheckpoint(checkpoint: CheckpointEvent | undefined) {
  return checkpoint === undefined ? {} : { checkpoint }
}
