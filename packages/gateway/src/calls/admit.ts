import {
  deriveSeed,
  hasImages,
  type Clock,
  type PolicyHandle,
  type Renderer,
  type SamplingSettings,
  type Tokenizer,
  type ToolSpec,
} from '@tiltyard/core'

import type { OpenAttempt, TakenPolicy } from '../attempt.ts'
import { asApiError, invalidRequest, noImages, unsupportedParameter } from '../errors.ts'
import { placeConversation, type Placement } from '../graph/placement.ts'
import type { Tags } from '../identity.ts'
import { randomId } from '../keys.ts'
import type { OpenRecord, SampleRecord } from './record.ts'
import type { InferenceRequest } from './request.ts'

export interface CallServices {
  readonly clock: Clock
  /** Tokens of a reply when neither client nor run say. */
  readonly replyTokens: number
  readonly samplerRetries: number
  readonly callMs: number
  readonly orphanMs: number
  /** Reads texts that come to be completed as they are. */
  readonly tokenizer: Tokenizer | undefined
  wallClock(): number
}

/** A request that may be sampled, with all that this takes. */
export interface Admitted {
  readonly attempt: OpenAttempt
  readonly request: InferenceRequest
  readonly tags: Tags
  readonly policy: PolicyHandle
  readonly services: CallServices
  readonly place: Placement
  readonly tools: readonly ToolSpec[]
  readonly settings: SamplingSettings
  readonly seeds: readonly number[] | undefined
  /** What ids of tool calls are derived from, for each reply. */
  readonly callSeeds: readonly number[] | undefined
  readonly record: OpenRecord
  readonly untrained: SampleRecord['untrained']
}

/** Finds where a request stands and what it may use. What breaks in here breaks for good, since nothing was left to chance. @throws ApiError */
export function admit(
  attempt: OpenAttempt,
  request: InferenceRequest,
  tags: Tags,
  taken: TakenPolicy,
  services: CallServices,
): Admitted {
  try {
    return admitted(attempt, request, tags, taken, services)
  } catch (error) {
    const known = asApiError(error)
    if (known.answer.status >= 500) attempt.breakOff(known)
    throw known
  }
}

function admitted(
  attempt: OpenAttempt,
  request: InferenceRequest,
  tags: Tags,
  { policy, alias, own }: TakenPolicy,
  services: CallServices,
): Admitted {
  const { sampler, renderer } = policy
  if ((request.logprobs ?? 0) > 0 && sampler.topLogprobs === undefined)
    throw request.route === 'completions'
      ? unsupportedParameter('logprobs', 'this model tells no alternatives; use logprobs: 0')
      : unsupportedParameter('top_logprobs', 'this model tells no alternatives; use logprobs alone')
  const place = placeOf(attempt, request, alias, renderer, services.tokenizer)
  const { limits } = attempt.options
  const asked = request.maxTokens ?? limits?.replyTokens ?? services.replyTokens
  const maxTokens = attempt.allowance(place, sampler.contextWindow, asked, request.n)
  const { settings, overridden } = settingsOf(attempt, request, policy.sampling)
  const record: OpenRecord = {
    id: randomId(
      request.route === 'responses'
        ? 'resp_'
        : request.route === 'completions'
          ? 'cmpl-'
          : 'chatcmpl-',
    ),
    sequence: attempt.calls.length,
    route: request.route,
    ...tags,
    version: sampler.version,
    promptTokens: place.prompt.length,
    reusedTokens: place.reused,
    stream: request.stream,
    maxTokens,
    clamped: request.maxTokens !== undefined && maxTokens < request.maxTokens,
    overridden,
    ignored: request.ignored,
    status: 'running',
    delivered: false,
    replayed: 0,
    samples: [],
    ms: 0,
  }
  const { conversation } = request.input.kind === 'conversation' ? request.input : {}
  const trains = own && tags.purpose !== 'judge'
  return {
    attempt,
    request,
    tags,
    policy,
    services,
    place,
    tools: conversation?.tools ?? [],
    settings,
    ...seedsOf(attempt, request, place),
    record,
    untrained: !trains ? 'filtered' : attempt.rewards.hasOutcome ? 'after_reward' : undefined,
  }
}

function placeOf(
  attempt: OpenAttempt,
  { input, route }: InferenceRequest,
  alias: string,
  renderer: Renderer,
  tokenizer: Tokenizer | undefined,
): Placement {
  if (input.kind === 'conversation') {
    const { conversation } = input
    if (!renderer.capabilities.images && hasImages(conversation.messages))
      throw noImages(route === 'responses' ? 'input' : 'messages')
    return placeConversation(attempt.graph, alias, renderer, conversation)
  }
  if (input.kind === 'ids') return attempt.tokens.place(input.ids)
  if (tokenizer === undefined)
    throw invalidRequest(
      'this gateway has no tokenizer for texts; send prompt as token ids',
      'prompt',
    )
  return attempt.tokens.place(tokenizer.encode(input.text))
}

function settingsOf(
  { options }: OpenAttempt,
  request: InferenceRequest,
  own: SamplingSettings,
): { readonly settings: SamplingSettings; readonly overridden: readonly string[] } {
  const { temperature, topK, topP, minP, seed } = request
  if (options.sampling !== 'respect') {
    const asked = { temperature, top_k: topK, top_p: topP, min_p: minP, seed }
    const overridden = Object.entries(asked).flatMap(([name, value]) =>
      value === undefined ? [] : [name],
    )
    return { settings: own, overridden }
  }
  if (minP !== undefined)
    throw unsupportedParameter('min_p', 'min_p is not supported; leave it out')
  return {
    settings: {
      ...own,
      ...(temperature === undefined ? {} : { temperature }),
      ...(topK === undefined ? {} : { topK }),
      // Nothing but the likeliest token reaches a probability of 0 first.
      ...(topP === undefined ? {} : topP === 0 ? { topK: 1 } : { topP }),
    },
    overridden: [],
  }
}

/** Seeds that depend on what was said and how often it was asked, not on what arrived first. There is no default seed. */
function seedsOf(
  { options }: OpenAttempt,
  { n, seed }: InferenceRequest,
  place: Placement,
): Pick<Admitted, 'seeds' | 'callSeeds'> {
  const before = place.begin(n)
  const each = Array.from({ length: n }, (_, index) => index)
  const derived = (from: number, name: string) =>
    each.map((index) => deriveSeed(from, name, place.hash, before + index))
  if (options.seed !== undefined) {
    const seeds = derived(options.seed, 'reply')
    return { seeds, callSeeds: seeds }
  }
  if (options.sampling !== 'respect' || seed === undefined)
    return { seeds: undefined, callSeeds: undefined }
  // A client sends one seed with all its requests, and ids of calls differ in all of them.
  const seeds = each.map((index) => (index === 0 ? seed : deriveSeed(seed, index)))
  return { seeds, callSeeds: derived(seed, 'calls') }
}
