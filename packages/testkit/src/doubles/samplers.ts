import {
  promptIds,
  StateError,
  systemClock,
  asError,
  type Clock,
  type PolicyVersion,
  type Sample,
  type Sampler,
  type SampleRequest,
  type WaitOptions,
} from '@tiltyard/core'

import { charReply, charText } from './char-renderer.ts'

/** A sampling call as a script sees it. */
export interface ScriptedCall {
  /** Calls before it. */
  readonly index: number
  readonly request: SampleRequest
  /** The prompt's text in the characters of `charRenderer`; made when read. */
  readonly text: string
}

/**
 * What a script answers: a text of `charRenderer` (the stop token is added), or ids with their log-probabilities (default −1
 * each). What is longer than the request allows is cut there, with stop `length`.
 */
export type ScriptedReply =
  | string
  | {
      readonly ids: readonly number[] | Int32Array
      readonly logprobs?: readonly number[] | Float32Array
      readonly stop?: 'stop' | 'length'
    }

export interface ScriptedSamplerOptions {
  /** Default `{ id: 'scripted', step: 0 }`. */
  readonly version?: PolicyVersion
  /** Default 1,000,000. */
  readonly contextWindow?: number
}

export interface ScriptedSampler extends Sampler {
  /** Every request so far. */
  readonly requests: readonly SampleRequest[]
  readonly closed: boolean
}

/**
 * A sampler whose replies are given: a list, in the order of the calls (then its last again), or a function of the call.
 * Answers at once.
 */
export function scriptedSampler(
  script: readonly ScriptedReply[] | ((call: ScriptedCall) => ScriptedReply),
  options: ScriptedSamplerOptions = {},
): ScriptedSampler {
  const requests: SampleRequest[] = []
  let closed = false
  const replyTo = (call: ScriptedCall): ScriptedReply => {
    if (typeof script === 'function') return script(call)
    const reply = script[Math.min(call.index, script.length - 1)]
    if (reply === undefined) throw new StateError('the script of the sampler is empty')
    return reply
  }
  return {
    specVersion: 'sampler/1',
    version: options.version ?? { id: 'scripted', step: 0 },
    contextWindow: options.contextWindow ?? 1_000_000,
    requests,
    get closed() {
      return closed
    },
    async sample(request, { signal } = {}) {
      if (closed) throw new StateError('the sampler is closed')
      signal?.throwIfAborted()
      const samples = Array.from({ length: request.n ?? 1 }, (_, index) => {
        const call: ScriptedCall = {
          index: requests.length,
          request,
          get text() {
            return charText(promptIds(request.prompt))
          },
        }
        requests.push(request)
        const sample = toSample(replyTo(call), request.maxTokens)
        request.onTokens?.(index, sample.ids, sample.logprobs)
        return sample
      })
      return samples
    },
    async logprobs(prompt, { signal } = {}) {
      if (closed) throw new StateError('the sampler is closed')
      signal?.throwIfAborted()
      const values = new Float32Array(prompt.length).fill(-1)
      values[0] = Number.NaN
      return values
    },
    async close() {
      closed = true
    },
  }
}

function toSample(reply: ScriptedReply, maxTokens: number): Sample {
  const given = typeof reply === 'string' ? { ids: charReply(reply) } : reply
  const ids = Int32Array.from(given.ids)
  const logprobs =
    given.logprobs === undefined
      ? new Float32Array(ids.length).fill(-1)
      : Float32Array.from(given.logprobs)
  if (ids.length > maxTokens)
    return {
      ids: ids.slice(0, maxTokens),
      logprobs: logprobs.slice(0, maxTokens),
      stop: 'length',
    }
  return { ids, logprobs, stop: given.stop ?? 'stop' }
}

export interface SlowSamplerOptions {
  /** Milliseconds before each answer, or a function of the call's number. */
  readonly milliseconds: number | ((index: number) => number)
  /** Default: real time. */
  readonly clock?: Clock
  /** Go on after an abort, as a bad adapter does. Default false. */
  readonly ignoresSignal?: boolean
}

/** A sampler that takes its time before it answers. */
export function slowSampler(sampler: Sampler, options: SlowSamplerOptions): Sampler {
  const { milliseconds, clock = systemClock, ignoresSignal = false } = options
  let calls = 0
  const wait = (signal: AbortSignal | undefined) => {
    const time = typeof milliseconds === 'number' ? milliseconds : milliseconds(calls)
    calls += 1
    return clock.sleep(time, ignoresSignal ? undefined : signal)
  }
  return wrapped(sampler, async ({ signal }) => wait(signal))
}

/** A sampler that fails as a schedule says: the error of call n (from 0), or undefined to let it through. */
export function failingSampler(
  sampler: Sampler,
  schedule: (index: number, request: SampleRequest | undefined) => Error | undefined,
): Sampler {
  let calls = 0
  return wrapped(sampler, async (_, request) => {
    const error = schedule(calls, request)
    calls += 1
    if (error !== undefined) throw error
  })
}

/** A sampler that never answers; it stops when told to. */
export function hangingSampler(sampler: Sampler): Sampler {
  return wrapped(
    sampler,
    ({ signal }) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(asError(signal.reason)), { once: true })
      }),
  )
}

function wrapped(
  sampler: Sampler,
  before: (options: WaitOptions, request?: SampleRequest) => Promise<void>,
): Sampler {
  return {
    specVersion: 'sampler/1',
    version: sampler.version,
    contextWindow: sampler.contextWindow,
    async sample(request, options = {}) {
      await before(options, request)
      return sampler.sample(request, options)
    },
    async logprobs(prompt, options = {}) {
      await before(options)
      return sampler.logprobs(prompt, options)
    },
    ...(sampler.topLogprobs === undefined
      ? {}
      : {
          topLogprobs: async (prompt, k, options = {}) => {
            await before(options)
            return sampler.topLogprobs!(prompt, k, options)
          },
        }),
    close: () => sampler.close(),
  }
}
