/**
 * The main job: a small policy learns to help at a store's desk. It is warm-started on scripted conversations: first on short ones,
 * without system prompt and tools, from which it learns to copy names and numbers into its calls; then on whole ones. Half of
 * the demonstrators look things up twice. Reinforcement learning goes on from there.
 */
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { bundleDataset } from '@tiltyard/bundle'
import { deriveSeed } from '@tiltyard/core'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

import { deskDemonstrations } from '../bundles/desk/demonstrations.ts'

const seed = 1
const tokenizer = await loadTokenizer(deskTokenizerFile)
const desk = await bundleDataset(fileURLToPath(new URL('../bundles/desk', import.meta.url)), {
  train: 'train',
  test: 'test',
  groupSize: 8,
  groupsPerBatch: 16,
})
const batchSize = 32
const lesson = (name: 'short' | 'whole', steps: number) =>
  deskDemonstrations({
    bundle: desk.bundle,
    seed: deriveSeed(seed, name),
    count: steps * batchSize,
    head: name === 'whole',
  })
const demonstrations = [...(await lesson('short', 200)), ...(await lesson('whole', 120))]

export const training = defineTraining({
  run: 'desk',
  index: fsRunIndex({ folder: 'runs' }),
  backend: localBackend({
    models: {
      'tiltyard-nano': {
        shape: {
          vocabularySize: tokenizer.vocabularySize,
          contextWindow: 640,
          rotaryBase: 100,
        },
        initial: { seed, deviation: 0.06 },
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
  steps: 50,
  seed,
  limits: { replyTokens: 80, replies: 4, toolCalls: 4 },
  advantages: { scale: 'std' },
  optimizer: { learningRate: 4e-4, clipNorm: 1, schedule: { shape: 'linear', floor: 0.1 } },
  checkpoints: { every: 20 },
  warmStart: {
    examples: demonstrations.map((conversation) => ({ conversation })),
    order: 'listed',
    batchSize,
    weighting: 'token',
    optimizer: {
      learningRate: 2.5e-3,
      clipNorm: 1,
      schedule: { shape: 'linear', warmup: 20, hold: 180, floor: 0.1 },
    },
    checkpoints: { every: 0 },
    evalEvery: 0,
  },
})
