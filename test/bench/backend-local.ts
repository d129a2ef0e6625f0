/**
 * Training and sampling rates of the embedded backend beside the machine's own limit: the rate of ONNX Runtime's matrix product,
 * measured in the same run with the same threads. Floating-point operations counted: six a parameter and token in training, two in
 * sampling, and those of attention. Also how long the caller's event loop is held up while the worker trains.
 *
 *   npx turbo run build && node --import tsx test/bench/backend-local.ts
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'

import { localBackend } from '@tiltyard/backend-local'
import { createPrompt, randomStream, tokenChunk, tokenPrompt, type Datum } from '@tiltyard/core'

import { graphBuilder } from '../../packages/backend-local/src/graph/builder.ts'
import { floats } from '../../packages/backend-local/src/runtime/executor.ts'
import { loadExecutor } from '../../packages/backend-local/src/runtime/onnxruntime.ts'

const VOCABULARY = 512
const REPEATS = 9
const threads = Math.min(availableParallelism(), 4)
const choice = process.argv.includes('--web') ? 'web' : 'auto'
const random = randomStream(1, 'bench')
const folder = mkdtempSync(join(tmpdir(), 'tiltyard-bench-'))

const ids = (length: number) => Int32Array.from({ length }, () => random.integer(VOCABULARY))
const joined = (a: Int32Array, b: Int32Array) => Int32Array.of(...a, ...b)
const rate = (value: number) => Math.round(value).toLocaleString('en')

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (performance.now() - start) / 1_000
}

/**
 * Shortest of several runs, in seconds, with runs of the matrix product between them: both see what the machine has to give at
 * that time.
 */
async function fastest(work: () => Promise<unknown>): Promise<number> {
  let best = Infinity
  for (let run = 0; run < REPEATS; run += 1) {
    best = Math.min(best, await seconds(work))
    productSeconds = Math.min(productSeconds, await seconds(product))
  }
  return best
}

const [rows, inner, outer, pairs] = [4_096, 128, 512, 4]
const productOperations = 4 * rows * inner * outer * pairs
let productSeconds = Infinity

/** 4096×128 · 128×512 and back, results kept inside. */
async function matrixProduct(): Promise<() => Promise<unknown>> {
  const executor = await loadExecutor({ choice, threads })
  const graph = graphBuilder()
  const up = graph.input('up', 'float', [inner, outer])
  const down = graph.input('down', 'float', [outer, inner])
  let x = graph.input('x', 'float', [rows, inner])
  for (let pair = 0; pair < pairs; pair += 1)
    x = graph.node('MatMul', [graph.node('MatMul', [x, up]), down])
  graph.output('y', graph.node('ReduceSum', [x, graph.integers([0])]))
  const program = await executor.load(graph.build())
  const filled = (length: number) => new Float32Array(length).fill(0.01)
  const feeds = {
    x: floats(filled(rows * inner), [rows, inner]),
    up: floats(filled(inner * outer), [inner, outer]),
    down: floats(filled(outer * inner), [outer, inner]),
  }
  return () => program.run(feeds)
}

const product = await matrixProduct()
const base = {
  vocabularySize: VOCABULARY,
  width: 128,
  headSize: 32,
  kvHeads: 2,
  contextWindow: 1_024,
}
const models = {
  '0.85 M, 4 layers, 4 heads': { shape: { ...base, layers: 4, heads: 4, hidden: 384 } },
  '0.36 M, 2 layers, 4 heads': { shape: { ...base, layers: 2, heads: 4, hidden: 256 } },
  '0.43 M, 2 layers, 8 heads': { shape: { ...base, layers: 2, heads: 8, hidden: 256 } },
}
const backend = localBackend({ models, folder, threads, executor: choice })
const info = await backend.describe()
console.log(info.executor)
console.log(
  '| model | training, 64 × 64 | share of the product’s rate | a step of 128 episodes, 450 + 180 tokens | sampling, 128 replies of 64 after 450 + 40 | loop held up at most |',
)
console.log('| --- | --- | --- | --- | --- | --- |')

for (const [name, { shape }] of Object.entries(models)) {
  const parameters = info.models.find((model) => model.name === name)!.parameters!
  const learner = await backend.learner({ model: name, adaptation: 'full' })
  const crossEntropy = { name: 'cross_entropy' } as const
  const datum = (whole: Int32Array, own: number): Datum => ({
    input: [tokenChunk(whole.slice(0, -1))],
    targets: whole.slice(1),
    weights: Float32Array.from({ length: whole.length - 1 }, (_, at) =>
      at < whole.length - own ? 0 : 1,
    ),
  })
  const step = (data: readonly Datum[]) => async () => {
    const learning = learner.forwardBackward(data, crossEntropy)
    await Promise.all([learning, learner.optimStep({ learningRate: 1e-4 })])
  }
  const square = Array.from({ length: 64 }, () => datum(ids(65), 64))
  await step(square)()
  const trainSeconds = await fastest(step(square))
  const attention = shape.layers * shape.heads * shape.headSize * 64 * 4
  const operations = (6 * parameters + 3 * attention) * 64 * 64
  const share = operations / trainSeconds / (productOperations / productSeconds)

  const system = ids(450)
  const episodes = Array.from({ length: 128 }, () => datum(joined(system, ids(180)), 140))
  const stepSeconds = await fastest(step(episodes))
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  await step(episodes)()
  delay.disable()

  const root = createPrompt([tokenChunk(system)])
  const sampleSeconds = await fastest(async () => {
    const sampler = await learner.publish()
    await Promise.all(
      Array.from({ length: 16 }, (_, group) =>
        sampler.sample({
          prompt: createPrompt([tokenChunk(ids(40))], root),
          maxTokens: 64,
          n: 8,
          seeds: Array.from({ length: 8 }, (_unused, member) => group * 8 + member),
        }),
      ),
    )
    await sampler.close()
  })
  console.log(
    `| ${name} | ${rate(4_096 / trainSeconds)} tok/s | ${Math.round(100 * share)} % | ${stepSeconds.toFixed(2)} s | ${rate((128 * 64) / sampleSeconds)} tok/s | ${Math.round(delay.max / 1e6)} ms |`,
  )
  await learner.close()
}
const alone = await backend.sampler({ model: Object.keys(models)[1]! })
const prompt = tokenPrompt(ids(40))
const oneSeconds = await fastest(() => alone.sample({ prompt, maxTokens: 64, seeds: [1] }))
console.log(
  `One reply alone: ${rate(64 / oneSeconds)} tok/s. Memory of the process: ${rate(process.memoryUsage().rss / 2 ** 20)} MiB.`,
)
await backend.close()
rmSync(folder, { recursive: true, force: true })
