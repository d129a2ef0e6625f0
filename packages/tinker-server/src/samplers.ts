import {
  DataError,
  createPrompt,
  type Backend,
  type PromptChunk,
  type RenderedPrompt,
  type Sampler,
  type TokenLogprob,
} from '@tiltyard/core'

import type { Checkpoints } from './checkpoints.ts'
import type { Futures } from './futures.ts'
import type { CheckedServerOptions } from './options.ts'
import { Refusal } from './refusal.ts'
import type { ServedSampler, Sessions } from './sessions.ts'
import { uint32 } from './training.ts'
import { promptChunks, type SampleBody } from './wire/json-requests.ts'
import { sampleResult, type TypedResult } from './wire/results.ts'

interface SampleSubmitted {
  readonly request_id: string
  readonly sample_sequence_ids: readonly string[]
}

/** Sampling sessions and the requests to them. */
export interface Samplers {
  /** Under the session's number for it, if it has one. */
  add(
    session: string,
    number: number | undefined,
    about: {
      readonly baseModel: string
      readonly path?: string
      readonly sampler: Promise<Sampler>
    },
  ): ServedSampler
  create(
    session: string,
    number: number,
    of: { readonly baseModel?: string; readonly path?: string },
  ): Promise<ServedSampler>
  /** @throws Refusal 429 when there are too many. */
  sample(body: SampleBody): Promise<SampleSubmitted>
}

/** Its first chunk, where more follow, is what many prompts share: samplers keep what a prompt's root brings ready. */
function promptOf(chunks: readonly PromptChunk[]): RenderedPrompt {
  const [first, ...rest] = chunks
  return first === undefined || rest.length === 0
    ? createPrompt(chunks)
    : createPrompt(rest, createPrompt([first]))
}

/** Requests remembered for repeats, per sampling session. */
const REMEMBERED = 10_000

export interface SamplersParts {
  readonly options: CheckedServerOptions
  readonly backend: Backend
  readonly sessions: Sessions
  readonly futures: Futures
  readonly checkpoints: Checkpoints
}

export function createSamplers(parts: SamplersParts): Samplers {
  const { options, backend, sessions, futures, checkpoints } = parts
  let running = 0

  const add: Samplers['add'] = (sessionId, number, about) => {
    const session = sessions.get(sessionId)
    const at = number ?? session.samplers.size
    const served: ServedSampler = {
      ...about,
      id: `${sessionId}:sample:${at}`,
      session: sessionId,
      known: new Map(),
    }
    served.sampler.catch(() => {})
    session.samplers.set(at, served)
    sessions.addSampler(served)
    return served
  }

  const open = async (of: { readonly baseModel?: string; readonly path?: string }) => {
    if (of.path === undefined) {
      if (of.baseModel === undefined) throw new Refusal(400, 'give base_model or model_path')
      return { baseModel: of.baseModel, sampler: await backend.sampler({ model: of.baseModel }) }
    }
    const entry = await checkpoints.get(of.path)
    if (entry.ref.kind !== 'sampling')
      throw new Refusal(
        400,
        `${of.path} is a training checkpoint; sample from a /sampler_weights/ path`,
      )
    return {
      baseModel: entry.baseModel,
      path: of.path,
      sampler: await backend.sampler({ checkpoint: entry.ref }),
    }
  }

  const create: Samplers['create'] = async (sessionId, number, of) => {
    const before = sessions.get(sessionId).samplers.get(number)
    if (before !== undefined) return before
    const { sampler, ...about } = await open(of)
    return (
      sessions.get(sessionId).samplers.get(number) ??
      add(sessionId, number, { ...about, sampler: Promise.resolve(sampler) })
    )
  }

  const run = async (
    body: SampleBody,
    sampler: Sampler,
    signal: AbortSignal,
  ): Promise<TypedResult> => {
    const { sampling_params: settings, num_samples: n = 1 } = body
    const prompt = promptOf(promptChunks(body.prompt, 'prompt'))
    const maxTokens = settings.max_tokens ?? sampler.contextWindow - prompt.length
    const topK = settings.top_k ?? -1
    const k = body.topk_prompt_logprobs ?? 0
    const waiting = { signal }
    if (k > 0 && sampler.topLogprobs === undefined)
      throw new DataError('this server gives no topk_prompt_logprobs')
    const [samples, scores, topk] = await Promise.all([
      sampler.sample(
        {
          prompt,
          maxTokens,
          n,
          stop: stopOf(settings.stop, options.endTokens),
          temperature: settings.temperature ?? 1,
          topP: settings.top_p ?? 1,
          ...(topK > 0 && { topK }),
          ...(settings.seed != null && { seeds: seedsOf(settings.seed, n) }),
        },
        waiting,
      ),
      body.prompt_logprobs === true || k > 0 ? sampler.logprobs(prompt, waiting) : undefined,
      k > 0 ? sampler.topLogprobs!(prompt, k, waiting) : undefined,
    ])
    const from = prompt.length - (body.prompt_logprobs_last_n ?? prompt.length)
    return sampleResult({
      samples,
      ...(scores !== undefined && {
        promptLogprobs: scores.map((value, at) => (at < from ? Number.NaN : value)),
      }),
      ...(topk !== undefined && {
        topk: topk.map((row, at): readonly TokenLogprob[] => (at < from ? [] : row)),
      }),
    })
  }

  /** The sampler that a request names: by its session, or, as old clients do, by model or path. */
  const samplerOf = async (body: SampleBody) => {
    if (body.sampling_session_id != null) {
      const served = sessions.sampler(body.sampling_session_id)
      sessions.get(served.session)
      return { served, sampler: await served.sampler }
    }
    const { sampler } = await open({
      ...(body.base_model != null && { baseModel: body.base_model }),
      ...(body.model_path != null && { path: body.model_path }),
    })
    return { served: undefined, sampler }
  }

  return {
    add,
    create,
    async sample(body) {
      checkSupported(body)
      const { served, sampler } = await samplerOf(body)
      const key = body.seq_id == null ? undefined : String(body.seq_id)
      const n = body.num_samples ?? 1
      const answer = (id: string): SampleSubmitted => ({
        request_id: id,
        sample_sequence_ids: Array.from({ length: n }, (_, index) => `${id}:${index}`),
      })
      const before = key === undefined ? undefined : served?.known.get(key)
      if (before !== undefined) return answer(before)
      if (running + n > options.limits.samples && running > 0)
        throw new Refusal(429, `${running} samples are under way; try again in a moment`)
      running += n
      const stopped = new AbortController()
      const work = run(body, sampler, stopped.signal).finally(() => {
        running -= n
        if (served === undefined) void sampler.close()
      })
      const id = futures.add(work, served?.session ?? 'sample', () =>
        stopped.abort(new Refusal(410, 'the sample was called off')),
      )
      if (served !== undefined && key !== undefined) {
        served.known.set(key, id)
        if (served.known.size > REMEMBERED) served.known.delete(served.known.keys().next().value!)
      }
      return answer(id)
    },
  }
}

function checkSupported(body: SampleBody): void {
  const asked = [
    ['topk_sample_logprobs', (body.topk_sample_logprobs ?? 0) > 0],
    ['target_prompt_logprobs', body.target_prompt_logprobs != null],
    ['prompt_alt_tokens_k', (body.prompt_alt_tokens_k ?? 0) > 0],
    ['record_stability_info', body.record_stability_info === true],
  ] as const
  const lacking = asked.filter(([, wanted]) => wanted).map(([name]) => name)
  if (lacking.length > 0) throw new Refusal(400, `this server has no ${lacking.join(', ')}`)
}

function stopOf(
  stop: SampleBody['sampling_params']['stop'],
  endTokens: readonly number[],
): { readonly tokens: readonly number[]; readonly strings: readonly string[] } {
  if (stop == null) return { tokens: endTokens, strings: [] }
  if (typeof stop === 'string') return { tokens: [], strings: [stop] }
  return {
    tokens: stop.filter((it) => typeof it === 'number'),
    strings: stop.filter((it) => typeof it === 'string'),
  }
}

/** The first sample has the seed itself, the others those that follow. */
function seedsOf(seed: number | string, n: number): readonly number[] {
  const first = uint32(seed)
  return Array.from({ length: n }, (_, index) => (first + index) >>> 0)
}
