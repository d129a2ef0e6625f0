/**
 * A Qwen3.5 model learns to serve customers, on a Tinker service. It trains on the tasks whose wishes a ticket can hold and is
 * evaluated on the benchmark's test split; the customer is scripted, so no second model is needed.
 *
 *   TILTYARD_TAU2_DATA=<folder> QWEN_TOKENIZER=<tokenizer.json> npx tiltyard train apps/retail/recipes/tinker.ts --dry-run
 *
 * Without `--dry-run` it needs `TINKER_API_KEY`. `TINKER_MODEL` names another model of the family.
 */
import { fileURLToPath } from 'node:url'

import { tinkerBackend } from '@tiltyard/backend-tinker'
import { bundleDataset } from '@tiltyard/bundle'
import { ConfigError } from '@tiltyard/core'
import { qwenRenderer } from '@tiltyard/renderer-qwen'
import { fsRunIndex } from '@tiltyard/run-index-fs'
import { loadTokenizer } from '@tiltyard/tokenizer'
import { defineTraining } from '@tiltyard/train'

const { env } = process

const retail = await bundleDataset(fileURLToPath(new URL('..', import.meta.url)), {
  train: 'train-solvable',
  test: 'test-solvable',
  groupSize: 8,
  groupsPerBatch: 16,
  load: { env },
})

const tokenizer = await loadTokenizer(
  given('QWEN_TOKENIZER', "the path of the model's tokenizer.json, from its page on Hugging Face"),
)

export const training = defineTraining({
  run: 'retail-tinker',
  index: fsRunIndex({ folder: 'runs' }),
  backend: tinkerBackend({ apiKey: () => given('TINKER_API_KEY', 'a key of the Tinker service') }),
  model: env['TINKER_MODEL'] ?? 'Qwen/Qwen3.5-4B',
  adaptation: { rank: 32 },
  renderer: qwenRenderer({ layout: 'qwen3_5', tokenizer, thinking: false }),
  dataset: retail.train,
  evaluations: [{ name: 'test', dataset: retail.test }],
  evalEvery: 10,
  steps: 40,
  seed: 1,
  rollout: { slots: 128 },
  limits: { replyTokens: 768, replies: 24, toolCalls: 24, turns: 5, contextWindow: 20_480 },
  advantages: { scale: 'std' },
  optimizer: { learningRate: 4e-5 },
  checkpoints: { every: 10 },
})

function given(name: string, what: string): string {
  const value = env[name]
  if (value !== undefined && value !== '') return value
  throw new ConfigError('recipe', [{ at: name, message: `set this variable to ${what}` }])
}
