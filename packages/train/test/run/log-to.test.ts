import type { Backend, Logger } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { defineSupervised, evaluate, supervise, train } from '../../src/index.ts'
import { letterBackend, letterDataset, letterTraining } from '../support/letters.ts'

const logger: Logger = { debug() {}, info() {}, warn() {}, error() {} }

test('F47: what a backend has to say is told where the run logs, in training, supervised training and evaluation', () => {
  const given: Logger[] = []
  const backend: Backend = { ...letterBackend(), logTo: (to) => void given.push(to) }
  const training = letterTraining({ backend, dataset: letterDataset({ epochs: 1 }) })
  const { run, index, model } = training.config
  const supervised = defineSupervised({
    run,
    index,
    backend,
    model,
    examples: [{ rows: [] }],
    batchSize: 1,
    optimizer: { learningRate: 1 },
  })
  train(training, { logger })
  supervise(supervised, { logger })
  void evaluate(training, { of: { model }, step: 0 }, { logger }).catch(() => {})
  expect(given).toEqual([logger, logger, logger])
  train(training)
  expect(given).toHaveLength(3)
})
