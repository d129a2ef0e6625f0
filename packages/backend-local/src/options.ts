import { availableParallelism } from 'node:os'

import { checkOptions, ConfigError, type Tokenizer } from '@tiltyard/core'
import { z } from 'zod'

import type { InitialWeights } from './model/parameters.ts'
import { modelShapeSchema, type ModelShape, type ModelShapeInput } from './model/shape.ts'

/** A small decoder by its sizes and how its weights begin. */
export interface LocalModel {
  readonly shape: ModelShapeInput
  /** Of the initial weights. Default: seed 0, deviation 0.02, query and key norms 1. */
  readonly initial?: Partial<InitialWeights>
}

export interface LocalBackendOptions {
  /** Models by name. */
  readonly models: Readonly<Record<string, LocalModel>>
  /** Holds the checkpoints. Made when the first one is saved. */
  readonly folder: string
  /** Needed for stop strings: what ids spell. */
  readonly tokenizer?: Tokenizer
  /** `auto`: the native build of ONNX Runtime, or the WebAssembly one where that doesn't load. Default `auto`. */
  readonly executor?: 'auto' | 'native' | 'web'
  /** Threads of a matrix product. Default: the machine's cores, at most 4. */
  readonly threads?: number
  /** Most positions in one graph call of training, padding included; one longer sequence goes alone. Default 1536. */
  readonly microBatchTokens?: number
  /** Sequences that are sampled together. Default 128. */
  readonly maxRows?: number
  /** Keys and values kept for prompts to go on from, per policy version and shared prefix, in bytes. Default 128 MiB. */
  readonly cacheBytes?: number
  /** Refuse a model whose training is estimated to need more, in bytes. Default 2 GiB. */
  readonly memoryBytes?: number
}

const size = z.int().positive()
const schema = z.strictObject({
  models: z
    .record(
      z.string().min(1),
      z.strictObject({
        shape: modelShapeSchema,
        initial: z
          .strictObject({
            seed: z.int().nonnegative().optional(),
            deviation: z.number().positive().optional(),
            queryKeyNorm: z.number().positive().optional(),
          })
          .optional(),
      }),
    )
    .refine((models) => Object.keys(models).length > 0, 'expected at least one model'),
  folder: z.string().min(1),
  tokenizer: z
    .custom<Tokenizer>(
      (value) => typeof value === 'object' && value !== null && 'bytes' in value,
      'expected a Tokenizer',
    )
    .optional(),
  executor: z.enum(['auto', 'native', 'web']).default('auto'),
  threads: size.optional(),
  microBatchTokens: size.default(1536),
  maxRows: size.default(128),
  cacheBytes: size.default(128 * 1024 * 1024),
  memoryBytes: size.default(2 * 1024 ** 3),
})

export interface ResolvedModel {
  readonly shape: ModelShape
  readonly initial: InitialWeights
}

/** The options with every default filled in. */
export interface ResolvedOptions {
  readonly models: Readonly<Record<string, ResolvedModel>>
  readonly folder: string
  readonly tokenizer: Tokenizer | undefined
  readonly executor: 'auto' | 'native' | 'web'
  readonly threads: number
  readonly microBatchTokens: number
  readonly maxRows: number
  readonly cacheBytes: number
}

const MOST_THREADS = 4

/** @throws ConfigError with every mistake, and when a model's estimate exceeds the memory limit. */
export function resolveOptions(options: LocalBackendOptions): ResolvedOptions {
  const { models, memoryBytes, threads, tokenizer, ...checked } = checkOptions(
    'localBackend',
    schema,
    options,
  )
  const resolved = Object.fromEntries(
    Object.entries(models).map(([name, { shape, initial }]) => [
      name,
      {
        shape,
        initial: {
          seed: initial?.seed ?? 0,
          deviation: initial?.deviation ?? 0.02,
          queryKeyNorm: initial?.queryKeyNorm ?? 1,
        },
      },
    ]),
  )
  for (const [name, { shape }] of Object.entries(resolved)) {
    const estimate = trainingBytes(shape, checked.microBatchTokens)
    if (estimate <= memoryBytes) continue
    throw new ConfigError('localBackend', [
      {
        at: `models.${name}`,
        message: `training it is estimated to need ${mebibytes(estimate)}, more than memoryBytes allows (${mebibytes(memoryBytes)}); lower microBatchTokens or the shape's contextWindow, layers or width, or raise memoryBytes`,
      },
    ])
  }
  return {
    ...checked,
    models: resolved,
    tokenizer,
    threads: threads ?? Math.min(availableParallelism(), MOST_THREADS),
  }
}

/**
 * Peak bytes of a training call at full context: activations that the backward pass reads again, weights, gradients and moments.
 * Fitted to measurements at 0.1 to 25 M parameters; right within a third.
 */
export function trainingBytes(shape: ModelShape, microBatchTokens: number): number {
  const { width, layers, heads, headSize, hidden, contextWindow, vocabularySize } = shape
  const positions = Math.max(microBatchTokens, contextWindow)
  const perLayer = 12 * width + 6 * hidden + 4 * heads * headSize + 3 * heads * contextWindow
  const activations = 4 * positions * (layers * perLayer + 4 * vocabularySize)
  const parameters =
    vocabularySize * width + layers * (3 * width * hidden + 4 * width * heads * headSize)
  return activations + 4 * 4 * parameters
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`
}
