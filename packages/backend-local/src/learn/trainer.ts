import type { Loss } from '@tiltyard/core'

import { type LoraShape, mergeAdapters, trainableOf } from '../model/adapters.ts'
import { elementsOf, EMBEDDING, headName, parametersOf, type Tensors } from '../model/parameters.ts'
import type { ModelShape } from '../model/shape.ts'
import {
  type Executor,
  type Feed,
  type Feeds,
  floats,
  type Program,
  type Results,
  wholes,
} from '../runtime/executor.ts'
import { type AdamSettings, adamUpdate, globalNorm, type Moments, zeroMoments } from './adam.ts'
import { isTrained, microBatches, sharedPrefix } from './batches.ts'
import { type FeedMaker, feedMaker, type Prefix, type Rows, rowsOf } from './feeds.ts'
import { learnGraph, prefixGraph, scoreGraph } from './graphs.ts'
import { lossKinds, lossSettings, tokenLoss } from './losses.ts'
import { type PackedData, type Span, spansOf } from './packed-data.ts'

export interface TrainerOptions {
  readonly executor: Executor
  readonly shape: ModelShape
  /** Absent: all weights are trained. */
  readonly lora: LoraShape | undefined
  /** Most positions in a graph call, padding included. Bounds memory. */
  readonly microBatchTokens: number
  readonly state: TrainerState
}

/** All that a trainer's next step depends on. */
export interface TrainerState {
  readonly step: number
  readonly weights: Tensors
  /** Present exactly with `lora`. */
  readonly adapters?: Tensors
  /** Of what is trained; absent tensors start at zero. */
  readonly moments: ReadonlyMap<string, Moments>
}

export interface ScoredData {
  /** log-probability of each target, in the order of the packed data. */
  readonly logprobs: Float32Array
  readonly loss: number
  readonly metrics: Readonly<Record<string, number>>
}

export interface StepResult {
  readonly step: number
  readonly gradientNorm: number
}

/** Weights, optimizer and gradients of one learner. Calls must not overlap. */
export interface Trainer {
  forward(data: PackedData, loss: Loss): Promise<ScoredData>
  /** @throws TrainingFault, with nothing added, when the loss or a gradient isn't finite. */
  forwardBackward(data: PackedData, loss: Loss): Promise<ScoredData>
  /** @throws TrainingFault, with nothing changed, when there is no gradient or its norm isn't finite. */
  step(adam: AdamSettings & { readonly clipNorm: number }): StepResult
  /** The weights with adapters merged in. What may change later is copied. */
  weights(): Map<string, Float32Array>
  state(): TrainerState
  release(): Promise<void>
}

export class TrainingFault extends Error {}

export function createTrainer({
  executor,
  shape,
  lora,
  microBatchTokens,
  state,
}: TrainerOptions): Trainer {
  const trainable = trainableOf(shape, lora)
  const trained = new Map(
    trainable.map(({ name }) => [
      name,
      (state.adapters?.get(name) ?? state.weights.get(name)!).slice(),
    ]),
  )
  const weights = new Map(
    [...state.weights].map(([name, tensor]) => [name, trained.get(name) ?? tensor]),
  )
  const moments = new Map(
    trainable.map(({ name, shape: sizes }) => [
      name,
      state.moments.get(name) ?? zeroMoments(elementsOf(sizes)),
    ]),
  )
  let steps = state.step
  let accumulated: Map<string, Float32Array> | undefined
  const feeds = feedMaker(shape)
  const parameters = parameterFeeds(shape, lora, weights, trained)
  const programs = lazyPrograms(executor, shape, lora)

  const run = async (
    data: PackedData,
    loss: Loss,
    gradients: Map<string, Float32Array> | undefined,
  ) => {
    const spans = spansOf(data)
    const logprobs = new Float32Array(data.tokens.length)
    const length = sharedPrefix(data, spans, loss.name)
    const prefix = length === 0 ? undefined : await scorePrefix(data, spans, length, logprobs)
    const own = spans.map(({ start, length: whole }) => ({
      start: start + length,
      length: whole - length,
    }))
    const upstream = new Map<string, Float32Array>()
    const lengths = own.map(({ length: positions }) => positions)
    for (const batch of microBatches(lengths, microBatchTokens)) {
      const rows = rowsOf(batch.map((index) => own[index]!))
      const inputs = { ...parameters, ...feeds.rows(data, rows, prefix) }
      const results =
        gradients === undefined
          ? await (await programs.score()).run(inputs)
          : await (await programs.learn()).run({ ...inputs, ...lossFeeds(feeds, data, rows, loss) })
      keepLogprobs(results['logprobs']!, rows, logprobs)
      if (gradients !== undefined)
        addGradients(shape, lora, results, data, rows, gradients, upstream)
    }
    if (gradients !== undefined && prefix !== undefined) {
      const rows = rowsOf([{ start: spans[0]!.start, length }])
      const results = await (
        await programs.prefix()
      ).run({
        ...parameters,
        ...feeds.rows(data, rows, undefined),
        ...upstreamFeeds(shape, length, upstream),
      })
      addGradients(shape, lora, results, data, rows, gradients, upstream)
    }
    return logprobs
  }

  const scorePrefix = async (
    data: PackedData,
    spans: readonly Span[],
    length: number,
    logprobs: Float32Array,
  ) => {
    const rows = rowsOf([{ start: spans[0]!.start, length }])
    const results = await (
      await programs.score()
    ).run({ ...parameters, ...feeds.rows(data, rows, undefined) })
    for (const { start } of spans) logprobs.set(results['logprobs']!, start)
    const tensors: Prefix['tensors'] = Object.fromEntries(
      Object.entries(results).flatMap(([name, tensor]) =>
        name.startsWith('own.') ? [[name.slice('own.'.length), tensor]] : [],
      ),
    )
    return { length, tensors }
  }

  return {
    async forward(data, loss) {
      return scored(data, loss, await run(data, loss, undefined))
    },
    async forwardBackward(data, loss) {
      const gradients = new Map(
        trainable.map(({ name, shape: sizes }) => [name, new Float32Array(elementsOf(sizes))]),
      )
      const result = scored(data, loss, await run(data, loss, gradients))
      if (!Number.isFinite(result.loss)) throw new TrainingFault(`the loss is ${result.loss}`)
      for (const [name, gradient] of gradients) {
        const at = notFinite(gradient)
        if (at !== undefined)
          throw new TrainingFault(`the gradient of ${name} has ${gradient[at]} at ${at}`)
      }
      if (accumulated === undefined) accumulated = gradients
      else for (const [name, gradient] of gradients) addTo(accumulated.get(name)!, gradient)
      return result
    },
    step({ clipNorm, ...settings }) {
      if (accumulated === undefined)
        throw new TrainingFault('there is no gradient; call forwardBackward first')
      const gradientNorm = globalNorm(accumulated.values())
      if (!Number.isFinite(gradientNorm))
        throw new TrainingFault(`the gradient norm is ${gradientNorm}`)
      const scale = clipNorm > 0 && gradientNorm > clipNorm ? clipNorm / gradientNorm : 1
      steps += 1
      for (const [name, gradient] of accumulated) {
        adamUpdate(trained.get(name)!, gradient, moments.get(name)!, settings, steps, scale)
      }
      accumulated = undefined
      return { step: steps, gradientNorm }
    },
    weights() {
      if (lora !== undefined) return mergeAdapters(shape, weights, trained, lora)
      return new Map([...weights].map(([name, tensor]) => [name, tensor.slice()]))
    },
    state: () => ({
      step: steps,
      weights,
      moments,
      ...(lora === undefined ? {} : { adapters: trained }),
    }),
    release: () => programs.release(),
  }
}

function parameterFeeds(
  shape: ModelShape,
  lora: LoraShape | undefined,
  weights: Tensors,
  trained: Tensors,
): Feeds {
  const all = [...parametersOf(shape), ...(lora === undefined ? [] : trainableOf(shape, lora))]
  return Object.fromEntries(
    all.map(({ name, shape: sizes }) => [
      name,
      floats(weights.get(name) ?? trained.get(name)!, sizes),
    ]),
  )
}

/** The graphs are loaded when first used: sampling alone needs none, supervised data without a prefix needs two. */
function lazyPrograms(executor: Executor, shape: ModelShape, lora: LoraShape | undefined) {
  const loaded = new Map<string, Promise<Program>>()
  const lazily = (name: string, graph: () => Parameters<Executor['load']>[0]) => () => {
    const program = loaded.get(name) ?? executor.load(graph())
    loaded.set(name, program)
    return program
  }
  return {
    score: lazily('score', () => scoreGraph(shape, lora)),
    learn: lazily('learn', () => learnGraph(shape, lora)),
    prefix: lazily('prefix', () => prefixGraph(shape, lora)),
    async release() {
      for (const program of loaded.values()) await (await program).release()
      loaded.clear()
    },
  }
}

function lossFeeds(feeds: FeedMaker, data: PackedData, rows: Rows, loss: Loss): Feeds {
  const { low, high, beta } = lossSettings(loss)
  return {
    loss: wholes([lossKinds.indexOf(loss.name)]),
    weight: feeds.perToken(data.weights, rows, 0),
    advantage: feeds.perToken(data.advantages, rows, 0),
    recorded: feeds.perToken(data.recorded, rows, 0),
    trained: feeds.perToken(data.mask ?? new Float32Array(data.tokens.length).fill(1), rows, 0),
    low: single(low),
    high: single(high),
    beta: single(beta),
  }
}

function single(value: number): Feed {
  return floats(Float32Array.of(value), [1])
}

function upstreamFeeds(
  { kvHeads, headSize }: ModelShape,
  length: number,
  upstream: Tensors,
): Record<string, Feed> {
  return Object.fromEntries(
    [...upstream].map(([name, tensor]) => [
      `upstream.${name.replace('prefix.', '')}`,
      floats(tensor, [1, kvHeads, length, headSize]),
    ]),
  )
}

function keepLogprobs(
  results: Float32Array,
  { spans, longest }: Rows,
  logprobs: Float32Array,
): void {
  spans.forEach(({ start, length }, row) => {
    logprobs.set(results.subarray(row * longest, row * longest + length), start)
  })
}

function addGradients(
  shape: ModelShape,
  lora: LoraShape | undefined,
  results: Results,
  data: PackedData,
  rows: Rows,
  gradients: Map<string, Float32Array>,
  upstream: Map<string, Float32Array>,
): void {
  for (const [output, values] of Object.entries(results)) {
    if (!output.startsWith('d.')) continue
    const name = output.slice('d.'.length)
    if (name.startsWith('prefix.')) {
      const sum = upstream.get(name)
      if (sum === undefined) upstream.set(name, values)
      else addTo(sum, values)
    } else if (name !== 'head') {
      addTo(gradients.get(name)!, values)
    }
  }
  if (lora !== undefined) return
  const head = gradients.get(headName(shape))!
  if (results['d.head'] !== undefined) addTo(head, results['d.head'])
  if (results['rows.target'] !== undefined)
    addRows(head, results['rows.target'], data.targets, rows, shape.width, -1)
  addRows(gradients.get(EMBEDDING)!, results['rows.token']!, data.tokens, rows, shape.width, 1)
}

/** Where the first number stands that isn't finite. */
function notFinite(values: Float32Array): number | undefined {
  // Zero times what isn't finite is NaN: one pass without a call for each number.
  let zero = 0
  for (let at = 0; at < values.length; at += 1) zero += values[at]! * 0
  return zero === 0 ? undefined : values.findIndex((value) => !Number.isFinite(value))
}

function addTo(sum: Float32Array, values: Float32Array): void {
  for (let at = 0; at < sum.length; at += 1) sum[at]! += values[at]!
}

/** Adds row after row to the token's row, in a fixed order. ONNX Runtime's ScatterND loses updates when indices repeat. */
function addRows(
  sum: Float32Array,
  values: Float32Array,
  ids: Int32Array,
  { spans, longest }: Rows,
  width: number,
  sign: 1 | -1,
): void {
  spans.forEach(({ start, length }, row) => {
    for (let at = 0; at < length; at += 1) {
      const from = (row * longest + at) * width
      const to = ids[start + at]! * width
      for (let column = 0; column < width; column += 1)
        sum[to + column]! += sign * values[from + column]!
    }
  })
}

function scored(data: PackedData, loss: Loss, logprobs: Float32Array): ScoredData {
  const settings = lossSettings(loss)
  const { weights, advantages, recorded, mask } = data
  let sum = 0
  let tokens = 0
  let gap = 0
  for (let at = 0; at < logprobs.length; at += 1) {
    if (!isTrained(data, at, loss.name)) continue
    const inputs = {
      weight: weights?.[at] ?? 0,
      advantage: advantages?.[at] ?? 0,
      recorded: recorded?.[at] ?? 0,
    }
    sum += (mask?.[at] ?? 1) * tokenLoss(loss.name, logprobs[at]!, inputs, settings)
    tokens += 1
    if (recorded !== undefined) gap = Math.max(gap, Math.abs(logprobs[at]! - recorded[at]!))
  }
  const metrics: Record<string, number> = { 'loss:sum': sum, 'tokens:sum': tokens }
  // On policy this is what sampler and learner disagree by; above 1e-4 the data is off-policy or the weights are stale.
  if (recorded !== undefined) metrics['logprob_gap:max'] = gap
  return { logprobs, loss: sum, metrics }
}
