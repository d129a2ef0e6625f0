import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'

import { localBackend } from '@tiltyard/backend-local'
import { tinkerBackend } from '@tiltyard/backend-tinker'
import { randomStream, tokenChunk, type Backend, type Datum } from '@tiltyard/core'
import { tinkerServer, type TinkerServer } from '@tiltyard/tinker-server'
import { loadTokenizer } from '@tiltyard/tokenizer'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { describeWith } from '../../support/machine.ts'
import { BYTE_VOCABULARY, writeByteTokenizer } from './byte-tokenizer.ts'
import { cookbook, prepare, python } from './environments.ts'

const run = promisify(execFile)
const MINUTES = 60_000
const STEPS = 8

/** A line of the recipe's `metrics.jsonl`. */
interface Line {
  readonly step: number
  readonly 'env/all/reward/total': number
  readonly 'env/all/format': number
  readonly 'optim/kl_sample_train_v1': number
  readonly 'optim/kl_sample_train_v2': number
}

/** A transformer of 70,000 weights over bytes. Embeddings so large that adapters alone can make a byte certain. */
const model = {
  shape: {
    vocabularySize: BYTE_VOCABULARY,
    width: 64,
    layers: 2,
    heads: 4,
    kvHeads: 2,
    headSize: 16,
    hidden: 128,
    contextWindow: 128,
  },
  initial: { seed: 1, deviation: 0.3 },
}

/** Questions as the recipe asks them, answered by some number and the end of a turn: well formed, right or wrong. */
function answers(count: number, seed: number): readonly Datum[] {
  const random = randomStream(seed, 'answers')
  return Array.from({ length: count }, () => {
    const sum = `${random.integer(101)} + ${random.integer(101)}`
    const asked = `User: What is 4 + 5?\n\nAssistant: 9\n\nUser: What is ${sum}?\n\nAssistant:`
    const ids = Int32Array.from(Buffer.from(`${asked} ${random.integer(200)}\n\nUser:`))
    const targets = ids.slice(1)
    return {
      input: [tokenChunk(ids.slice(0, -1))],
      targets,
      weights: Float32Array.from(targets, (_, at) => (at + 1 < asked.length ? 0 : 1)),
    }
  })
}

// The recipe knows nothing of us: it is given an address, a model's name and a path to begin with.
describeWith(
  python(cookbook.minor),
  '#70 the cookbook’s arithmetic recipe trains the embedded model on our server',
  () => {
    let folder: string
    let embedded: Backend
    let server: TinkerServer
    let lines: readonly Line[]

    beforeAll(async () => {
      const interpreter = await prepare(cookbook)
      folder = await mkdtemp(join(tmpdir(), 'tiltyard-cookbook-'))
      await writeByteTokenizer(folder)
      embedded = localBackend({
        models: { [folder]: model },
        folder: join(folder, 'checkpoints'),
        tokenizer: await loadTokenizer(pathToFileURL(join(folder, 'tokenizer.json'))),
        threads: 1,
      })
      server = tinkerServer({ backend: embedded })
      const url = await server.listen()

      // A policy from random weights never ends a turn; a few steps of cloning let rewards differ.
      const backend = tinkerBackend({ baseUrl: url, apiKey: 'tml-dummy' })
      const learner = await backend.learner({ model: folder, adaptation: { rank: 8, seed: 1 } })
      for (let step = 0; step < 16; step += 1) {
        const learning = learner.forwardBackward(answers(32, step), { name: 'cross_entropy' })
        await Promise.all([learning, learner.optimStep({ learningRate: 0.02 })])
      }
      const { path } = await learner.save('warm')
      await backend.close()

      await run(
        interpreter,
        [
          ['-W', 'ignore', '-m', 'tinker_cookbook.recipes.math_rl.train'],
          ['env=arithmetic', `model_name=${folder}`, 'renderer_name=role_colon'],
          [`load_checkpoint_path=${path}`, `base_url=${url}`, `log_path=${join(folder, 'run')}`],
          ['groups_per_batch=8', 'group_size=8', 'max_tokens=16', `max_steps=${STEPS}`],
          ['learning_rate=0.003', 'lora_rank=8', 'eval_every=0', 'save_every=4'],
          ['behavior_if_log_dir_exists=delete'],
        ].flat(),
        {
          env: { ...process.env, TINKER_API_KEY: 'tml-dummy', TINKER_BASE_URL: url },
          timeout: 15 * MINUTES,
          maxBuffer: 64 * 1024 * 1024,
        },
      )
      const text = await readFile(join(folder, 'run', 'metrics.jsonl'), 'utf8')
      lines = text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Line)
    }, 30 * MINUTES)

    afterAll(async () => {
      await server?.close()
      await embedded?.close()
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    })

    test('it makes all its steps', () => {
      expect(lines.map(({ step }) => step)).toEqual(
        Array.from({ length: STEPS }, (_, step) => step),
      )
    })

    test('its reward rises from that of a policy that often doesn’t end its turn', () => {
      const rewards = lines.map((line) => line['env/all/reward/total'])
      const formats = lines.map((line) => line['env/all/format'])
      // −0.1 for a turn that doesn't end, 1 for a right answer.
      for (const reward of rewards) {
        expect(reward).toBeGreaterThanOrEqual(-0.1)
        expect(reward).toBeLessThan(0.3)
      }
      // The recipe seeds no sample, so the rise is asked of what most samples decide: whether the turn ends.
      const late = formats.slice(-3)
      expect(late.reduce((sum, format) => sum + format, 0) / 3).toBeGreaterThan(formats[0]!)
    })

    test('what it sampled it trains with the same log-probabilities: no divergence between sampler and learner', () => {
      for (const line of lines) {
        expect(Math.abs(line['optim/kl_sample_train_v1'])).toBeLessThan(1e-4)
        expect(Math.abs(line['optim/kl_sample_train_v2'])).toBeLessThan(1e-4)
      }
    })

    test('its checkpoints are there', async () => {
      const text = await readFile(join(folder, 'run', 'checkpoints.jsonl'), 'utf8')
      const saved = text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { state_path?: string })
      expect(saved.at(-1)!.state_path).toMatch(/^tinker:\/\/.*\/weights\/final$/)
    })
  },
)
