/** The desk's recipe, small enough for a test: every part of it, too few steps to learn much. */
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { bundleDataset } from '@tiltyard/bundle'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

import { deskDemonstrations } from '../../../apps/trainer/bundles/desk/demonstrations.ts'
import { nanoShape } from '../../support/nano.ts'

const tokenizer = await loadTokenizer(deskTokenizerFile)
const folder = fileURLToPath(new URL('../../../apps/trainer/bundles/desk', import.meta.url))
const desk = await bundleDataset(folder, {
  train: 'train-one-call',
  test: 'smoke',
  groupSize: 4,
  groupsPerBatch: 4,
})
const interruptAt = process.env['INTERRUPT_AT']
/** With `INTERRUPT_AT` it presses Ctrl-C itself when it gives the batch of that step: from outside it could come too late. */
const dataset: typeof desk.train = {
  ...desk.train,
  batch(step, seed) {
    if (interruptAt === String(step)) process.kill(process.pid, 'SIGINT')
    return desk.train.batch(step, seed)
  },
}
const demonstrations = await deskDemonstrations({ bundle: desk.bundle, seed: 1, count: 40 })

export const training = defineTraining({
  run: 'small-desk',
  index: fsRunIndex({ folder: 'runs' }),
  backend: localBackend({
    models: {
      nano: {
        shape: {
          vocabularySize: tokenizer.vocabularySize,
          ...nanoShape,
        },
      },
    },
    folder: 'runs/checkpoints',
    tokenizer,
    threads: 1,
  }),
  model: 'nano',
  adaptation: 'full',
  renderer: qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false }),
  dataset,
  evaluations: [{ name: 'held-out', dataset: desk.test }],
  evalEvery: 2,
  steps: 4,
  limits: { replyTokens: 24, replies: 2 },
  keepConstantGroups: true,
  optimizer: { learningRate: 1e-3 },
  checkpoints: { every: 2 },
  warmStart: {
    examples: demonstrations.map((conversation) => ({ conversation })),
    batchSize: 8,
    optimizer: { learningRate: 2e-3 },
    checkpoints: { every: 0 },
    evalEvery: 0,
  },
})
