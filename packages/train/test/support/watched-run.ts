import type { Dataset } from '@tiltyard/core'
import { memoryRunIndex } from '@tiltyard/testkit'

import { listDataset, train, type StepReport, type TrainingConfig } from '../../src/index.ts'
import {
  letterBackend,
  letterSource,
  letterTasks,
  letterTraining,
  type LetterSourceOptions,
} from './letters.ts'
import { recordingBackend, type RecordingOptions } from './recording-backend.ts'

/** Rewards that differ within every group, whatever is replied. */
export function varied(options: LetterSourceOptions = {}) {
  let plays = 0
  return letterSource({ ...options, score: () => (plays += 1) % 2 })
}

/** Rewards that are all equal. */
export function flat() {
  return letterSource({ score: () => 0 })
}

/** One pass over the letters in their order, each played by a group of two. */
export function batches(letters: string, groupsPerBatch: number, source = varied()): Dataset {
  return listDataset({
    name: 'l',
    tasks: letterTasks(letters, 2, source),
    groupsPerBatch,
    epochs: 1,
    shuffle: false,
  })
}

/** A training to its end: what it asked of its backend, what it reported and recorded. */
export async function run(config: Partial<TrainingConfig>, options: RecordingOptions = {}) {
  const index = memoryRunIndex()
  const recording = recordingBackend(letterBackend(), options)
  const training = letterTraining({
    index,
    backend: recording.backend,
    evalEvery: 0,
    ...config,
  })
  const reports: StepReport[] = []
  const running = train(training)
  for await (const report of running) reports.push(report)
  const result = await running.finish()
  return { ...recording, index, reports, result, events: index.events('letters') }
}

/** Learner calls without the numbers. */
export function shape(calls: readonly string[]) {
  return calls.map((call) => call.split(' ')[0])
}
