import {
  DataError,
  StateError,
  UnsupportedError,
  asError,
  promptIds,
  randomStream,
  type CheckpointRef,
  type PolicyVersion,
  type RenderedPrompt,
  type Sample,
  type Sampler,
  type SampleRequest,
} from '@tiltyard/core'

import { bigramText, draw, logSoftmax, type Table } from './bigram-policy.ts'

export interface BigramSamplerParts {
  readonly table: Table
  readonly contextWindow: number
  readonly version: PolicyVersion
  readonly checkpoint?: CheckpointRef
}

export function bigramSampler({
  table,
  contextWindow,
  version,
  checkpoint,
}: BigramSamplerParts): Sampler {
  let closed = false

  const enter = (prompt: RenderedPrompt, more: number, signal: AbortSignal | undefined) => {
    if (closed) throw new StateError('the sampler is closed')
    if (signal?.aborted === true) throw asError(signal.reason)
    if (prompt.length === 0) throw new DataError('a prompt needs at least one token')
    if (prompt.length + more > contextWindow) {
      throw new UnsupportedError(
        `${prompt.length} tokens of prompt and ${more} of reply don't fit into ${contextWindow}`,
      )
    }
    return promptIds(prompt)
  }

  const scores = async (prompt: RenderedPrompt, signal?: AbortSignal) => {
    const ids = enter(prompt, 0, signal)
    await turn()
    if (signal?.aborted === true) throw asError(signal.reason)
    return Array.from(ids, (id, position) => {
      const row = position === 0 ? undefined : logSoftmax(table, ids[position - 1]!)
      return { id, row }
    })
  }

  return {
    specVersion: 'sampler/1',
    version,
    contextWindow,
    ...(checkpoint !== undefined && { checkpoint }),
    async sample(request, { signal } = {}) {
      const { prompt, maxTokens, n = 1, seeds, temperature = 1 } = request
      const ids = enter(prompt, maxTokens, signal)
      if (maxTokens < 1) throw new DataError(`maxTokens is ${maxTokens}; at least 1 is needed`)
      if (temperature < 0)
        throw new DataError(`temperature is ${temperature}; it can't be negative`)
      if (seeds !== undefined && seeds.length !== n)
        throw new DataError(`${seeds.length} seeds for ${n} samples`)
      const previous = ids.at(-1)!
      return Promise.all(
        Array.from({ length: n }, async (_, index) => {
          const seed = seeds?.[index] ?? Math.floor(Math.random() * 2 ** 32)
          const sample = await one(request, previous, seed, signal)
          request.onTokens?.(index, sample.ids, sample.logprobs)
          return sample
        }),
      )
    },
    async logprobs(prompt, { signal } = {}) {
      return Float32Array.from(
        await scores(prompt, signal),
        ({ id, row }) => row?.[id] ?? Number.NaN,
      )
    },
    async topLogprobs(prompt, k, { signal } = {}) {
      return (await scores(prompt, signal)).map(({ row }) => {
        if (row === undefined) return []
        const ranked = [...row.keys()].toSorted((a, b) => row[b]! - row[a]! || a - b)
        return ranked.slice(0, k).map((id) => ({ id, logprob: row[id]! }))
      })
    },
    async close() {
      closed = true
    },
  }

  async function one(
    request: SampleRequest,
    last: number,
    seed: number,
    signal: AbortSignal | undefined,
  ): Promise<Sample> {
    const { maxTokens, stop } = request
    const random = randomStream(seed, 'sample')
    const ids: number[] = []
    const logprobs: number[] = []
    let previous = last
    let stopped = false
    while (ids.length < maxTokens && !stopped) {
      await turn()
      if (signal?.aborted === true) throw asError(signal.reason)
      const row = logSoftmax(table, previous)
      previous = draw(row, request, random.next())
      ids.push(previous)
      logprobs.push(row[previous]!)
      stopped =
        stop !== undefined &&
        (stop.tokens.includes(previous) ||
          stop.strings.some((text) => text !== '' && bigramText(ids).includes(text)))
    }
    return {
      ids: Int32Array.from(ids),
      logprobs: Float32Array.from(logprobs),
      stop: stopped ? 'stop' : 'length',
    }
  }
}

/** Lets others run, as a real sampler does between tokens. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
