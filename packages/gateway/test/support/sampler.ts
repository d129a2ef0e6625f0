import { promptIds, type Sample, type Sampler, type SampleRequest } from '@tiltyard/core'

import { reply } from './byte-renderer.ts'

/** What a script answers to call n: a text in the spelling of `reply`, or ids. */
export type Answer = string | { readonly ids: readonly number[]; readonly stop?: 'stop' | 'length' }

export interface ByteSampler extends Sampler {
  /** Every request, with the ids of its prompt. */
  readonly seen: readonly { readonly request: SampleRequest; readonly prompt: Int32Array }[]
}

export interface ByteSamplerOptions {
  readonly step?: number
  readonly contextWindow?: number
  /** Awaited before sample n is given, with the signal of the call; tokens stream one by one after it. */
  readonly before?: (index: number, signal: AbortSignal | undefined) => Promise<void>
  /** Awaited between tokens. */
  readonly between?: (index: number) => Promise<void>
  readonly logprobs?: (ids: Int32Array) => Float32Array
  readonly alternatives?: boolean
}

/** Answers as a script says, token by token. */
export function byteSampler(
  script: readonly Answer[] | ((index: number, prompt: Int32Array) => Answer),
  options: ByteSamplerOptions = {},
): ByteSampler {
  const seen: { request: SampleRequest; prompt: Int32Array }[] = []
  const { step = 0, contextWindow = 100_000, logprobs } = options
  let next = 0
  return {
    specVersion: 'sampler/1',
    version: { id: `v${step}`, step },
    contextWindow,
    seen,
    async sample(request, { signal } = {}) {
      signal?.throwIfAborted()
      const prompt = promptIds(request.prompt)
      seen.push({ request, prompt })
      const samples: Sample[] = []
      for (let number = 0; number < (request.n ?? 1); number += 1) {
        const index = next
        next += 1
        await options.before?.(index, signal)
        const answer =
          typeof script === 'function'
            ? script(index, prompt)
            : script[Math.min(index, script.length - 1)]!
        const { ids, stop = 'stop' } = typeof answer === 'string' ? { ids: reply(answer) } : answer
        const kept = Int32Array.from(ids.slice(0, request.maxTokens))
        for (const id of kept) {
          await options.between?.(index)
          signal?.throwIfAborted()
          request.onTokens?.(number, Int32Array.of(id), Float32Array.of(-0.5))
        }
        samples.push({
          ids: kept,
          logprobs: logprobs?.(kept) ?? new Float32Array(kept.length).fill(-0.5),
          stop: kept.length < ids.length ? 'length' : stop,
        })
      }
      return samples
    },
    logprobs: async (prompt) => new Float32Array(prompt.length),
    ...(options.alternatives === true
      ? {
          topLogprobs: async (prompt, k) =>
            Array.from({ length: prompt.length }, () =>
              Array.from({ length: k }, (_, id) => ({ id: 97 + id, logprob: -1 - id })),
            ),
        }
      : {}),
    async close() {},
  }
}
