import {
  NotFoundError,
  StateError,
  UnsupportedError,
  lossNames,
  unknownName,
  type Backend,
  type Capabilities,
  type CheckpointInfo,
  type CheckpointRef,
  type Learner,
  type Sampler,
} from '@tiltyard/core'

import { bigramLearner, type LearnerState } from './bigram-learner.ts'
import { randomTable } from './bigram-policy.ts'
import { bigramSampler } from './bigram-sampler.ts'

export interface BigramBackendOptions {
  /** Default `bigram`. */
  readonly model?: string
  /** Ids. Default 64. */
  readonly vocabularySize?: number
  /** Default 512 tokens. */
  readonly contextWindow?: number
  /** Of the model's weights. Default 1. */
  readonly seed?: number
}

/**
 * A whole backend in memory: a table of bigrams that samples, learns and is saved, exactly and within microseconds. Every promise of
 * the contract holds, so whatever stands on a backend can be tested on it. An adapter's rank is ignored: the whole table learns.
 */
export function bigramBackend(options: BigramBackendOptions = {}): Backend {
  const { model = 'bigram', vocabularySize = 64, contextWindow = 512, seed = 1 } = options
  const base = randomTable(vocabularySize, seed)
  const saved = new Map<string, { readonly state: LearnerState; readonly info: CheckpointInfo }>()
  const made = new Set<Learner | Sampler>()
  let closed = false
  let count = 0

  const capabilities: Capabilities = {
    models: [{ name: model, contextWindow, vocabularySize, parameters: vocabularySize ** 2 }],
    losses: lossNames,
    mask: true,
    images: false,
    topLogprobs: true,
    deterministic: true,
    adaptations: ['full', 'lora'],
    executor: 'bigram table, 1 thread',
  }

  const own = <T extends Learner | Sampler>(it: T): T => {
    made.add(it)
    return it
  }
  const checkOpen = () => {
    if (closed) throw new StateError('the backend is closed')
  }
  const checkModel = (name: string) => {
    if (name !== model) throw new NotFoundError(unknownName('model', name, [model]))
  }
  const stored = (ref: CheckpointRef) => {
    const found = saved.get(ref.path)
    if (found === undefined)
      throw new NotFoundError(
        `no checkpoint ${ref.path}; there are ${[...saved.keys()].join(', ')}`,
      )
    return found
  }
  const openSampler = (state: LearnerState, step: number, checkpoint?: CheckpointRef) =>
    own(
      bigramSampler({
        table: state.table,
        contextWindow,
        version: { id: `v${(count += 1)}`, step },
        ...(checkpoint !== undefined && { checkpoint }),
      }),
    )

  return {
    specVersion: 'backend/1',
    name: 'bigram',
    describe: async () => capabilities,
    async learner({ model: name, from, optimizer = true }) {
      checkOpen()
      checkModel(name)
      const loaded = from === undefined ? undefined : stored(from).state
      const run = `run${(count += 1)}`
      return own(
        bigramLearner({
          model,
          base,
          contextWindow,
          ...(loaded !== undefined && { loaded, optimizer }),
          save(state, as, kind) {
            const path = `bigram://${run}/${kind}/${as}`
            const info = {
              path,
              kind,
              name: as,
              createdAt: Date.now(),
              bytes: state.table.values.byteLength,
            }
            saved.set(path, { state, info })
            return { path, kind }
          },
          openSampler,
        }),
      )
    },
    async sampler(ref) {
      checkOpen()
      if ('model' in ref) {
        checkModel(ref.model)
        return openSampler({ table: base, steps: 0 }, 0)
      }
      const { state, info } = stored(ref.checkpoint)
      if (info.kind !== 'sampling')
        throw new UnsupportedError(
          `${info.path} is a ${info.kind} checkpoint; sample from a published one`,
        )
      const { path, kind } = info
      return openSampler(state, state.steps, { path, kind })
    },
    checkpoints: () => ({
      list: async () => [...saved.values()].map(({ info }) => info),
      exists: async ({ path }) => saved.has(path),
      async delete({ path }) {
        saved.delete(path)
      },
      async files(ref) {
        const { values } = stored(ref).state.table
        const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
        const read = async function* () {
          yield bytes
        }
        return [{ name: 'table.f64', bytes: bytes.length, read }]
      },
    }),
    async close() {
      closed = true
      for (const it of made) await it.close()
    },
  }
}
