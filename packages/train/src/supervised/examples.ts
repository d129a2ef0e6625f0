import {
  ConfigError,
  DataError,
  datumLength,
  randomStream,
  type Datum,
  type Mistake,
  type Renderer,
  type TrainOn,
  type WeightedTokens,
} from '@tiltyard/core'

import type { SupervisedExample } from '../config/options.ts'
import { shiftTokens } from '../data/shift.ts'
import { joinRows } from './join-rows.ts'

export interface RenderingOptions {
  readonly renderer: Renderer | undefined
  readonly trainOn: TrainOn
  readonly weighting: 'example' | 'token'
  /** Longest row, in positions; absent: any. */
  readonly contextWindow: number | undefined
}

/** The data of one example. */
export type ExampleData = readonly Datum[]

/**
 * Examples as data for `cross_entropy`, each with at least one target to train.
 * @param at Where they stand in the configuration, for errors.
 * @throws ConfigError naming every example that can't be trained, and why.
 */
export function renderExamples(
  examples: readonly SupervisedExample[],
  options: RenderingOptions,
  at: string,
): readonly ExampleData[] {
  const mistakes: Mistake[] = []
  const data = examples.map((example, index) => {
    try {
      return exampleData(example, options)
    } catch (error) {
      if (!(error instanceof Error)) throw error
      mistakes.push({ at: `${at}.${index}`, message: error.message })
      return []
    }
  })
  if (mistakes.length > 0) throw new ConfigError('supervised training', mistakes)
  return data
}

function exampleData(example: SupervisedExample, options: RenderingOptions): ExampleData {
  const rows = 'rows' in example ? example.rows : rowsOf(example, options)
  const data = rows.map(({ chunks, weights }) => weightedDatum({ chunks, weights }))
  const sum = data.reduce((total, { weights }) => total + sumOf(weights), 0)
  if (sum <= 0) throw new DataError('it has no target to train')
  const longest = data.reduce((most, datum) => Math.max(most, datumLength(datum) + 1), 0)
  if (options.contextWindow !== undefined && longest > options.contextWindow) {
    throw new DataError(
      `it has ${longest} tokens, the model's context window ${options.contextWindow}`,
    )
  }
  if (options.weighting === 'token') return data
  return data.map((datum) => ({ ...datum, weights: datum.weights.map((weight) => weight / sum) }))
}

function rowsOf(
  { conversation, trainOn }: Extract<SupervisedExample, { readonly conversation: unknown }>,
  options: RenderingOptions,
): readonly WeightedTokens[] {
  if (options.renderer === undefined)
    throw new DataError('it is a conversation, which needs a renderer')
  return joinRows(options.renderer.supervised(conversation, trainOn ?? options.trainOn))
}

/**
 * A row with one weight per position as a datum with one weight per target: weights `[0, 0, 1, 1, 1]` become `[0, 1, 1, 1]`, and,
 * weighted by example, `[0, ⅓, ⅓, ⅓]`.
 * @throws DataError when the weights are not one per position.
 */
export function weightedDatum({
  chunks,
  weights,
}: WeightedTokens): Datum & { readonly weights: Float32Array } {
  const shifted = shiftTokens(chunks)
  if (weights.length !== shifted.targets.length + 1) {
    throw new DataError(
      `${weights.length} weights for ${shifted.targets.length + 1} positions; there must be one each`,
    )
  }
  return { ...shifted, weights: weights.subarray(1) }
}

/** Mean negative log-likelihood −Σ w·p / Σ w: p `[−1, −2, −3]` and w `[0, 1, 1]` give 2.5. */
export function meanNll(data: readonly Datum[], logprobs: readonly ArrayLike<number>[]): number {
  let nll = 0
  let total = 0
  for (const [index, { weights = new Float32Array() }] of data.entries()) {
    for (const [at, weight] of weights.entries()) {
      if (weight === 0) continue
      nll -= weight * logprobs[index]![at]!
      total += weight
    }
  }
  return nll / total
}

/**
 * Which examples step n takes. Each pass goes over all of them once, as listed or in an order of its own that seed and pass
 * decide; the last batch of a pass may be short.
 */
export function batchIndices(
  examples: number,
  batchSize: number,
  step: number,
  seed: number,
  order: 'shuffled' | 'listed',
): readonly number[] {
  const perEpoch = Math.ceil(examples / batchSize)
  const epoch = Math.floor(step / perEpoch)
  const listed = Array.from({ length: examples }, (_, index) => index)
  const ordered =
    order === 'listed' ? listed : randomStream(seed, 'supervised', epoch).shuffle(listed)
  const start = (step % perEpoch) * batchSize
  return ordered.slice(start, start + batchSize)
}

function sumOf(values: Float32Array): number {
  return values.reduce((sum, value) => sum + value, 0)
}
