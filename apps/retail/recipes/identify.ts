/**
 * The main job on real data: the policy of the desk's recipe learns to tell customers of tau2-bench's retail database their user
 * id, and is evaluated on customers that it never saw.
 *
 *   npx tiltyard train apps/retail/recipes/identify.ts --data <folder>
 */
import { fileURLToPath } from 'node:url'

import { localBackend } from '@tiltyard/backend-local'
import { type Bundle, bundleDataset, loadBundle } from '@tiltyard/bundle'
import { deriveSeed } from '@tiltyard/core'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { deskTokenizerFile, loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

import { deskDemonstrations } from '../../trainer/bundles/desk/demonstrations.ts'

const seed = 1
const tokenizer = await loadTokenizer(deskTokenizerFile)
const identify = await bundleDataset(
  fileURLToPath(new URL('../bundles/identify', import.meta.url)),
  { train: 'train', test: 'test', groupSize: 8, groupsPerBatch: 16, load: { env: process.env } },
)
const desk = await loadBundle(fileURLToPath(new URL('../../trainer/bundles/desk', import.meta.url)))

const batchSize = 32
const lesson = (bundle: Bundle, name: 'short' | 'whole', steps: number) =>
  deskDemonstrations({
    bundle,
    seed: deriveSeed(seed, bundle.name, name),
    count: steps * batchSize,
    head: name === 'whole',
  })
// The desk's made-up customers are many more: copying is learned from them, so that the real ones are not learned by heart.
const demonstrations = [
  ...(await lesson(desk, 'short', 260)),
  ...(await lesson(identify.bundle, 'short', 160)),
  ...(await lesson(identify.bundle, 'whole', 200)),
]

export const training = defineTraining({
  run: 'identify',
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
  dataset: identify.train,
  rollout: { slots: 128 },
  evaluations: [{ name: 'held-out', dataset: identify.test }],
  evalEvery: 20,
  steps: 60,
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
      schedule: { shape: 'linear', warmup: 20, hold: 380, floor: 0.1 },
    },
    checkpoints: { every: 0 },
    evalEvery: 0,
  },
})
