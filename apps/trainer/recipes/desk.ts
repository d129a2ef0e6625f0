/**
 * The main job: a small policy learns to help at a store's desk. It is warm-started on scripted conversations for just so long that it
 * knows the layout and begins to copy names and numbers into its calls; reinforcement learning goes on from there.
 */
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { bundleDataset } from '@tiltyard/bundle'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

import { deskDemonstrations } from '../bundles/desk/demonstrations.ts'

const seed = 1
const tokenizer = await loadTokenizer(deskTokenizerFile)
const desk = await bundleDataset(fileURLToPath(new URL('../bundles/desk', import.meta.url)), {
  train: 'train-one-call',
  test: 'test-one-call',
  groupSize: 8,
  groupsPerBatch: 16,
})
const demonstrations = await deskDemonstrations({
  bundle: desk.bundle,
  seed,
  count: 14_000,
  wrongShare: 0,
  split: 'train-one-call',
})

export const training = defineTraining({
  run: 'desk',
  index: fsRunIndex({ folder: 'runs' }),
  backend: localBackend({
    models: {
      'tiltyard-nano': {
        shape: {
          vocabularySize: tokenizer.vocabularySize,
          heads: 8,
          contextWindow: 640,
          rotaryBase: 1_000,
        },
        initial: { seed, deviation: 0.06, queryKeyNorm: 1.2 },
      },
    },
    folder: 'runs/checkpoints',
    tokenizer,
  }),
  model: 'tiltyard-nano',
  adaptation: 'full',
  renderer: qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false }),
  dataset: desk.train,
  rollout: { slots: 128 },
  evaluations: [{ name: 'held-out', dataset: desk.test }],
  evalEvery: 20,
  steps: 60,
  seed,
  limits: { replyTokens: 80, replies: 4, toolCalls: 4 },
  advantages: { scale: 'std' },
  optimizer: { learningRate: 2e-4, clipNorm: 1 },
  checkpoints: { every: 20 },
  warmStart: {
    examples: demonstrations.map((conversation) => ({ conversation })),
    batchSize: 16,
    steps: 900,
    optimizer: {
      learningRate: 4e-3,
      clipNorm: 1,
      schedule: { shape: 'linear', warmup: 20, floor: 0.1 },
    },
    checkpoints: { every: 0 },
    evalEvery: 0,
  },
})
