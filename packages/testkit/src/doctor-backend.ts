import {
  ConfigError,
  StateError,
  lossNames,
  unknownName,
  type Backend,
  type Capabilities,
  type Lora,
} from '@tiltyard/core'

import { backendCases, type BackendCasesOptions, type BackendFeature } from './backend-cases.ts'
import type { ConformanceCase } from './cases.ts'
import { bigramBackend } from './doubles/bigram-backend.ts'
import { bigramText } from './doubles/bigram-policy.ts'
import { guestBackend, noUse, type BackendUse } from './guest-backend.ts'

export interface BackendCheckOptions {
  /** A backend of its own on the service, for each case. Closed by the check. */
  readonly create: () => Backend
  /** Default: the service's only one. */
  readonly model?: string
  /** Default: LoRA of rank 8, seed 1; whole models where the service has no adapters. */
  readonly adaptation?: 'full' | Lora
  /** Largest difference of log-probabilities that should be equal, in nats. Default 1e-4. */
  readonly tolerance?: number
  /** Learning rate at which a few steps move log-probabilities by much more than the tolerance. Default 0.01. */
  readonly learningRate?: number
  /** Text of the model's ids; without it stop strings aren't checked. */
  readonly decode?: (ids: Int32Array) => string
  /** What the service lacks beside what it says itself. */
  readonly lacks?: Readonly<Partial<Record<BackendFeature, string>>>
}

export interface BackendCheck {
  readonly described: Capabilities
  readonly model: string
  readonly adaptation: 'full' | Lora
  /** Nothing is sent before one is run; each cleans up after itself. */
  readonly cases: readonly ConformanceCase[]
  /** The most that all cases can use. */
  readonly atMost: Readonly<BackendUse>
  /** What the cases have used so far. */
  readonly used: Readonly<BackendUse>
  /** Ends the cases under way: deletes their checkpoints and closes their backends. */
  stop(): Promise<void>
}

/** Ids of which data and prompts are made, where the model has as many. */
const VOCABULARY = 64

/**
 * Asks a service what it has, and prepares the cases of a backend for it: the library half of `tiltyard doctor backend`. What they can
 * cost is counted, not estimated: the same cases are played against a double in memory first.
 * @throws ConfigError when the model isn't the service's, or none was named and it has several.
 */
export async function planBackendCheck(options: BackendCheckOptions): Promise<BackendCheck> {
  const described = await describe(options.create())
  const model = modelOf(described, options.model)
  const size = described.models.find(({ name }) => name === model)?.vocabularySize
  const vocabulary = Math.min(VOCABULARY, size ?? VOCABULARY)
  const lacks = { ...lacksOf(described, options), ...options.lacks }
  const adaptation =
    options.adaptation ?? (described.adaptations.includes('lora') ? { rank: 8, seed: 1 } : 'full')
  const shared = { model, adaptation, vocabulary, lacks }
  const { decode, tolerance, learningRate } = options

  const used = noUse()
  const open = new Set<Backend>()
  let stopped = false
  const create = async () => {
    if (stopped) throw new StateError('the check was stopped')
    const guest = guestBackend(options.create(), { use: used, sampled: 'given' })
    open.add(guest)
    return guest
  }
  return {
    described,
    model,
    adaptation,
    cases: backendCases({
      ...shared,
      create,
      ...(decode !== undefined && { decode }),
      ...(tolerance !== undefined && { tolerance }),
      ...(learningRate !== undefined && { learningRate }),
    }),
    atMost: await useOnDouble({ ...shared, ...(decode !== undefined && { decode: bigramText }) }),
    used,
    async stop() {
      stopped = true
      await Promise.all([...open].map((backend) => backend.close()))
    },
  }
}

async function describe(backend: Backend): Promise<Capabilities> {
  try {
    return await backend.describe()
  } finally {
    await backend.close()
  }
}

function modelOf({ models }: Capabilities, named: string | undefined): string {
  const names = models.map(({ name }) => name)
  const [only] = names
  if (named !== undefined && names.includes(named)) return named
  if (named === undefined && only !== undefined && names.length === 1) return only
  const message =
    named === undefined
      ? `name one; the service has ${names.length === 0 ? 'none' : names.join(', ')}`
      : unknownName('model', named, names)
  throw new ConfigError('model', [{ at: '', message }])
}

function lacksOf(described: Capabilities, { decode }: BackendCheckOptions) {
  const lacks: Partial<Record<BackendFeature, string>> = {}
  for (const name of lossNames)
    if (!described.losses.includes(name)) lacks[name] = `the service says that it has no ${name}`
  for (const name of ['mask', 'topLogprobs', 'deterministic'] as const)
    if (!described[name]) lacks[name] = `the service says that it lacks it: ${name}`
  if (decode === undefined) lacks.stopStrings = 'the model’s tokenizer wasn’t given'
  return lacks
}

async function useOnDouble(
  options: Omit<BackendCasesOptions, 'create'> & { readonly vocabulary: number },
): Promise<BackendUse> {
  const { model, vocabulary, lacks = {} } = options
  const use = noUse()
  const create = async () => {
    const double = bigramBackend({ model, vocabularySize: vocabulary })
    const described = {
      ...(await double.describe()),
      losses: lossNames.filter((name) => lacks[name] === undefined),
      mask: lacks.mask === undefined,
      topLogprobs: lacks.topLogprobs === undefined,
      deterministic: lacks.deterministic === undefined,
    }
    return guestBackend({ ...double, describe: async () => described }, { use, sampled: 'asked' })
  }
  for (const { run, skip } of backendCases({ ...options, create }))
    if (skip === undefined) await run()
  return use
}
