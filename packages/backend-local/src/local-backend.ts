import {
  checkOptions,
  lossNames,
  NotFoundError,
  StateError,
  unknownName,
  type Backend,
  type Capabilities,
  type CheckpointRef,
  type Tokenizer,
} from '@tiltyard/core'
import { z } from 'zod'

import { folderCheckpoints } from './checkpoint/store.ts'
import { localLearner } from './local-learner.ts'
import { localSampler } from './local-sampler.ts'
import { parameterCount } from './model/parameters.ts'
import { resolveOptions, type LocalBackendOptions } from './options.ts'
import { createHost, startWorker, type WorkerLike } from './worker/host.ts'
import type { Requests, WorkerSetup } from './worker/protocol.ts'

const adaptationSchema = z.union([
  z.literal('full'),
  z.strictObject({
    rank: z.int().positive(),
    alpha: z.number().positive().optional(),
    seed: z.int().optional(),
  }),
])

/**
 * Samples and learns in a worker thread of this process, on the CPU: small decoders of Qwen3's shape, real gradients. Nothing starts
 * before the first call; nothing but work under way keeps the process alive.
 * @throws ConfigError for options that aren't right, or a model too large for `memoryBytes`.
 */
export function localBackend(options: LocalBackendOptions): Backend {
  return localBackendOn(startWorker, options)
}

/** With the thread of a test. */
export function localBackendOn(
  startThread: (setup: WorkerSetup) => WorkerLike,
  options: LocalBackendOptions,
): Backend {
  const { tokenizer, ...resolved } = resolveOptions(options)
  const { models, folder } = resolved
  const host = createHost(
    {
      ...resolved,
      spellings: tokenizer === undefined ? undefined : spell(tokenizer, models),
    },
    startThread,
  )
  const store = folderCheckpoints(folder)
  let count = 0
  let closed = false

  const next = () => {
    if (closed) throw new StateError('the backend is closed')
    count += 1
    return count
  }
  const shapeOf = (model: string) => {
    const found = models[model]
    if (found === undefined)
      throw new NotFoundError(unknownName('model', model, Object.keys(models)))
    return found.shape
  }
  const samplerOf = (
    id: number,
    model: string,
    { steps, checkpoint }: Requests['publish']['out'],
    step = steps,
  ) =>
    localSampler({
      host,
      id,
      shape: shapeOf(model),
      version: { id: `${model}#${id}`, step },
      ...(checkpoint === undefined ? {} : { checkpoint }),
      spells: tokenizer !== undefined,
    })

  return {
    specVersion: 'backend/1',
    name: 'local',
    async describe(): Promise<Capabilities> {
      const { name, version, threads } = await host.request('describe', undefined)
      return {
        models: Object.entries(models).map(([model, { shape }]) => ({
          name: model,
          contextWindow: shape.contextWindow,
          vocabularySize: shape.vocabularySize,
          parameters: parameterCount(shape),
        })),
        losses: lossNames,
        mask: true,
        images: false,
        topLogprobs: true,
        // The WebAssembly build rounds rows of some shapes by how many they are.
        deterministic: name === 'onnxruntime-node',
        adaptations: ['full', 'lora'],
        executor: `${name} ${version}, ${threads} ${threads === 1 ? 'thread' : 'threads'}, ${process.arch}`,
      }
    },
    async learner({ model, adaptation, from, optimizer = true }) {
      const id = next()
      const shape = shapeOf(model)
      const checked = checkOptions('adaptation', adaptationSchema, adaptation)
      const lora =
        checked === 'full'
          ? {}
          : { lora: { rank: checked.rank, alpha: checked.alpha ?? checked.rank } }
      const { steps } = await host.request('openLearner', {
        learner: id,
        model,
        ...lora,
        loraSeed: checked === 'full' ? 0 : (checked.seed ?? 0),
        ...(from === undefined ? {} : { from }),
        optimizer,
      })
      return localLearner({
        host,
        id,
        model,
        shape,
        steps,
        publish: async (publish, step) => {
          const sampler = next()
          return samplerOf(sampler, model, await publish(sampler), step)
        },
      })
    },
    async sampler(ref) {
      const id = next()
      if ('model' in ref) {
        shapeOf(ref.model)
        return samplerOf(
          id,
          ref.model,
          await host.request('openSampler', { sampler: id, model: ref.model }),
        )
      }
      const model = await store.modelOf(ref.checkpoint)
      shapeOf(model)
      const opened = await host.request('openSampler', { sampler: id, model, from: ref.checkpoint })
      return samplerOf(id, model, { ...opened, ...onlySampling(ref.checkpoint) })
    },
    checkpoints: () => store,
    async close() {
      closed = true
      await host.close()
    },
  }
}

/** A sampler tells where its weights are kept when that is a checkpoint to sample from. */
function onlySampling(ref: CheckpointRef): { readonly checkpoint?: CheckpointRef } {
  return ref.kind === 'sampling' ? { checkpoint: ref } : {}
}

/** What each id spells, flat, so that it crosses to the worker as two buffers. */
function spell(tokenizer: Tokenizer, models: WorkerSetup['models']): WorkerSetup['spellings'] {
  const ids = Math.max(...Object.values(models).map(({ shape }) => shape.vocabularySize))
  const parts = Array.from({ length: ids }, (_, id) => tokenizer.bytes(id))
  const starts = new Int32Array(ids + 1)
  parts.forEach((part, id) => {
    starts[id + 1] = starts[id]! + part.length
  })
  const bytes = new Uint8Array(starts[ids]!)
  parts.forEach((part, id) => bytes.set(part, starts[id]))
  return { bytes, starts }
}
