import {
  checkOptions,
  DataError,
  lineage,
  promptIds,
  StateError,
  UnsupportedError,
  type CheckpointRef,
  type PolicyVersion,
  type RenderedPrompt,
  type Sampler,
} from '@tiltyard/core'
import { z } from 'zod'

import type { ModelShape } from './model/shape.ts'
import type { Host } from './worker/host.ts'

export interface LocalSamplerOptions {
  readonly host: Host
  /** The worker's number for it. */
  readonly id: number
  readonly shape: ModelShape
  readonly version: PolicyVersion
  readonly checkpoint?: CheckpointRef
  /** Whether ids can be spelled, for stop strings. */
  readonly spells: boolean
}

const seed = z.int().min(0).max(0xffffffff)
const requestSchema = z.object({
  maxTokens: z.int().positive(),
  n: z.int().positive().optional(),
  temperature: z.number().nonnegative().optional(),
  topK: z.int().positive().optional(),
  topP: z.number().positive().max(1).optional(),
  seeds: z.array(seed).optional(),
})

const SEED_RANGE = 2 ** 32

export function localSampler({
  host,
  id,
  shape,
  version,
  checkpoint,
  spells,
}: LocalSamplerOptions): Sampler {
  let closed = false
  const checkOpen = () => {
    if (closed) throw new StateError('the sampler is closed')
  }
  const idsOf = (prompt: RenderedPrompt, room: number): Int32Array => {
    const ids = promptIds(prompt)
    checkIds(ids, shape)
    if (ids.length + room > shape.contextWindow) {
      throw new DataError(
        `the prompt has ${ids.length} tokens; with ${room} more it exceeds the context window of ${shape.contextWindow}`,
      )
    }
    return ids
  }
  return {
    specVersion: 'sampler/1',
    version,
    ...(checkpoint === undefined ? {} : { checkpoint }),
    contextWindow: shape.contextWindow,
    async sample(request, { signal } = {}) {
      checkOpen()
      const {
        n = 1,
        maxTokens,
        temperature = 1,
        topK = 0,
        topP = 1,
        seeds,
      } = checkOptions('sample request', requestSchema, request)
      const { prompt, stop, onTokens } = request
      if (seeds !== undefined && seeds.length !== n)
        throw new DataError(`${n} samples need ${n} seeds, got ${seeds.length}`)
      const stopStrings = stop?.strings ?? []
      if (stopStrings.length > 0 && !spells) {
        throw new UnsupportedError(
          'stop strings need to know what ids spell; give localBackend the tokenizer',
        )
      }
      const ids = idsOf(prompt, 1)
      return await host.request(
        'sample',
        {
          sampler: id,
          prompt: ids,
          shared: sharedOf(prompt),
          // The reply ends at the window, as one that is cut by its own limit does.
          maxTokens: Math.min(maxTokens, shape.contextWindow - ids.length),
          stopTokens: stop?.tokens ?? [],
          stopStrings,
          seeds: seeds ?? Array.from({ length: n }, () => Math.floor(Math.random() * SEED_RANGE)),
          temperature,
          topK,
          topP,
          streaming: onTokens !== undefined,
        },
        {
          ...(signal === undefined ? {} : { signal }),
          ...(onTokens === undefined
            ? {}
            : {
                onToken: (index, token, logprob) =>
                  onTokens(index, Int32Array.of(token), Float32Array.of(logprob)),
              }),
        },
      )
    },
    async logprobs(prompt, { signal } = {}) {
      checkOpen()
      const input = { sampler: id, prompt: idsOf(prompt, 0), shared: sharedOf(prompt) }
      return await host.request('logprobs', input, signal === undefined ? {} : { signal })
    },
    async topLogprobs(prompt, k, { signal } = {}) {
      checkOpen()
      const input = { sampler: id, prompt: idsOf(prompt, 0), shared: sharedOf(prompt), k }
      return await host.request('topLogprobs', input, signal === undefined ? {} : { signal })
    },
    async close() {
      if (closed) return
      closed = true
      // A closed backend has closed its samplers.
      await host.request('closeSampler', { sampler: id }).catch(ignoreClosed)
    },
  }
}

export function ignoreClosed(error: unknown): undefined {
  if (StateError.is(error, 'STATE')) return undefined
  throw error
}

/** @throws DataError for an id that the model doesn't have, or no id at all. */
export function checkIds(ids: Int32Array, { vocabularySize }: ModelShape): void {
  if (ids.length === 0) throw new DataError('there are no tokens; a prompt needs at least one')
  const at = ids.findIndex((id) => id < 0 || id >= vocabularySize)
  if (at !== -1) {
    throw new DataError(
      `token ${at} is ${ids[at]}; the model has ids from 0 to ${vocabularySize - 1}. Is it the model's own tokenizer?`,
    )
  }
}

/** What a prompt's first handle brings, many prompts share: a renderer puts system prompt and tools there. */
function sharedOf(prompt: RenderedPrompt): number {
  const [root, ...rest] = lineage(prompt)
  return rest.length === 0 ? 0 : root!.length
}
