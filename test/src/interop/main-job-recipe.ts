/**
 * The main job, short: warm start, training steps, evaluations, checkpoints. With `SERVICE` set its backend is the Tinker service at
 * that address, else the embedded one; nothing else differs.
 */
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { tinkerBackend } from '@tiltyard/backend-tinker'
import { bundleDataset } from '@tiltyard/bundle'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

import { deskDemonstrations } from '../../../apps/trainer/bundles/desk/demonstrations.ts'
import { nanoShape } from '../../support/nano.ts'

const service = process.env['SERVICE']
const tokenizer = await loadTokenizer(deskTokenizerFile)
const desk = await bundleDataset(
  fileURLToPath(new URL('../../../apps/trainer/bundles/desk', import.meta.url)),
  { train: 'train-one-call', test: 'smoke', groupSize: 4, groupsPerBatch: 3 },
)
const demonstrations = await deskDemonstrations({ bundle: desk.bundle, seed: 1, count: 24 })

export const training = defineTraining({
  run: 'wired',
  index: fsRunIndex({ folder: 'runs' }),
  backend:
    service === undefined
      ? localBackend({
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
        })
      : tinkerBackend({ baseUrl: service, apiKey: 'tml-of-the-test' }),
  model: 'nano',
  adaptation: 'full',
  renderer: qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false }),
  dataset: desk.train,
  evaluations: [{ name: 'held-out', dataset: desk.test }],
  evalEvery: 2,
  steps: 3,
  limits: { replyTokens: 24, replies: 2 },
  keepConstantGroups: true,
  advantages: { scale: 'std' },
  optimizer: { learningRate: 1e-3, clipNorm: 1 },
  checkpoints: { every: 2 },
  warmStart: {
    examples: demonstrations.map((conversation) => ({ conversation })),
    batchSize: 8,
    steps: 3,
    optimizer: { learningRate: 2e-3, clipNorm: 1 },
    checkpoints: { every: 0 },
    evalEvery: 0,
  },
})
