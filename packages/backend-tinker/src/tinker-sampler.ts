import {
  DataError,
  StateError,
  UnsupportedError,
  concatIds,
  type CheckpointRef,
  type PolicyVersion,
  type RenderedPrompt,
  type Sample,
  type Sampler,
  type SampleRequest,
} from '@tiltyard/core'

import { TinkerError } from './errors.ts'
import type { SampleSettings, SamplingSession } from './sampling-session.ts'

export interface TinkerSamplerParts {
  readonly session: SamplingSession
  readonly version: PolicyVersion
  readonly checkpoint?: CheckpointRef
  readonly contextWindow: number
}

/** A sampling session as a `Sampler`. A request with seeds becomes one call per seed: the service takes one seed a call. */
export function tinkerSampler(parts: TinkerSamplerParts): Sampler {
  const { session, version, checkpoint, contextWindow } = parts
  let closed = false

  const enter = (prompt: RenderedPrompt, more: number) => {
    if (closed) throw new StateError('the sampler is closed')
    if (prompt.length === 0) throw new DataError('a prompt needs at least one token')
    if (prompt.length + more <= contextWindow) return
    throw new UnsupportedError(
      `${prompt.length} tokens of prompt and ${more} of reply don't fit into the context window of ${contextWindow}`,
      { details: { promptTokens: prompt.length, replyTokens: more, contextWindow } },
    )
  }

  const scored = async (
    prompt: RenderedPrompt,
    settings: Partial<SampleSettings>,
    signal: AbortSignal | undefined,
  ) => {
    // The service scores prompts only while it samples; one token of reply must have room.
    enter(prompt, 1)
    return session.sample(
      prompt,
      { numSamples: 1, maxTokens: 1, promptLogprobs: true, ...settings },
      signal === undefined ? {} : { signal },
    )
  }

  return {
    specVersion: 'sampler/1',
    version,
    contextWindow,
    ...(checkpoint !== undefined && { checkpoint }),
    async sample(request, options) {
      const { prompt, maxTokens, n = 1, seeds } = request
      checkRequest(request)
      enter(prompt, maxTokens)
      const settings = settingsOf(request)
      const answers = await Promise.all(
        (
          seeds?.map((seed) => ({ ...settings, numSamples: 1, seed })) ?? [
            { ...settings, numSamples: n },
          ]
        ).map((each) => session.sample(prompt, each, options)),
      )
      const samples = answers.flatMap((answer) => answer.samples)
      checkSamples(samples, n)
      for (const [index, { ids, logprobs }] of samples.entries())
        request.onTokens?.(index, ids, logprobs)
      return samples
    },
    async logprobs(prompt, { signal } = {}) {
      const { promptLogprobs } = await scored(prompt, {}, signal)
      if (promptLogprobs?.length === prompt.length) return promptLogprobs
      // Some services leave out the first position, which nothing predicts.
      if (promptLogprobs?.length === prompt.length - 1)
        return Float32Array.from([Number.NaN, ...promptLogprobs])
      throw new TinkerError(
        'TINKER_FAILED',
        `the service gave ${promptLogprobs?.length ?? 0} log-probabilities for a prompt of ${prompt.length} tokens`,
        { operation: 'score a prompt' },
      )
    },
    async topLogprobs(prompt, k, { signal } = {}) {
      const { topkPromptLogprobs } = await scored(prompt, { topkPromptLogprobs: k }, signal)
      if (topkPromptLogprobs?.length === prompt.length)
        return topkPromptLogprobs.map((row, position) => (position === 0 ? [] : row))
      throw new UnsupportedError('this service gives no likeliest tokens of a prompt')
    },
    async close() {
      closed = true
    },
  }
}

function checkRequest({ maxTokens, n = 1, seeds, temperature = 1 }: SampleRequest): void {
  if (!Number.isInteger(maxTokens) || maxTokens < 1)
    throw new DataError(`maxTokens is ${maxTokens}; a whole number from 1 is needed`)
  if (!Number.isInteger(n) || n < 1)
    throw new DataError(`n is ${n}; a whole number from 1 is needed`)
  if (!(temperature >= 0)) throw new DataError(`temperature is ${temperature}; it starts at 0`)
  if (seeds !== undefined && seeds.length !== n)
    throw new DataError(`${seeds.length} seeds for ${n} samples; one each is needed`)
}

function settingsOf(request: SampleRequest): Omit<SampleSettings, 'numSamples'> {
  const { maxTokens, temperature, topK, topP } = request
  const stop = stopOf(request)
  return {
    maxTokens,
    ...(temperature !== undefined && { temperature }),
    ...(topK !== undefined && { topK }),
    ...(topP !== undefined && { topP }),
    ...(stop !== undefined && { stop }),
  }
}

/** Absent: the model's own end of text. */
function stopOf({ stop }: SampleRequest): readonly number[] | readonly string[] | undefined {
  if (stop === undefined) return undefined
  if (stop.tokens.length === 0) return stop.strings.length === 0 ? undefined : stop.strings
  if (stop.strings.length === 0) return stop.tokens
  throw new UnsupportedError(
    'a Tinker service takes stop tokens or stop strings, not both in one request',
  )
}

function checkSamples(samples: readonly Sample[], n: number): void {
  const whole = samples.every(({ ids, logprobs }) => ids.length === logprobs.length)
  if (samples.length === n && whole) return
  const ids = concatIds(samples.map((sample) => sample.ids)).length
  throw new TinkerError(
    'TINKER_FAILED',
    samples.length === n
      ? `the service gave log-probabilities for some of ${ids} sampled tokens only`
      : `the service gave ${samples.length} samples where ${n} were asked for`,
    { operation: 'sample' },
  )
}
