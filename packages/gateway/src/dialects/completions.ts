import type { JsonValue } from '@tiltyard/core'

import type { ActiveCall } from '../calls/call.ts'
import type { InferenceInput, InferenceRequest } from '../calls/request.ts'
import type { CallResult, Choice } from '../calls/result.ts'
import { invalidRequest, unsupportedParameter } from '../errors.ts'
import { dataEvent, type StreamPiece } from '../http/event-stream.ts'
import { chatUsage, type ChatOptions } from './chat-response.ts'
import type { Fields } from './fields.ts'
import { logprobEntries, promptTokenIds } from './logprobs.ts'
import {
  ignoredFields,
  refuseBending,
  samplingFields,
  stopTexts,
  tokenLimit,
} from './sampling-fields.ts'

export interface CompletionsRequest extends InferenceRequest {
  readonly includeUsage: boolean
}

/** A prompt as ids or text, gone on from as it is. @throws ApiError */
export function readCompletionsRequest(body: Fields, maxN: number): CompletionsRequest {
  refuseBending(body)
  for (const name of ['echo', 'suffix', 'best_of'])
    if (![undefined, false, '', 1].includes(body.raw(name) as undefined))
      throw unsupportedParameter(name, `${name} is not supported; leave it out`)
  const maxTokens = tokenLimit(body, 'max_tokens')
  const logprobs = body.integer('logprobs', 0, 20)
  return {
    route: 'completions',
    model: body.string('model') ?? '',
    input: promptInput(body.raw('prompt')),
    n: body.integer('n', 1, maxN) ?? 1,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...samplingFields(body),
    stop: stopTexts(body),
    calls: false,
    parallelCalls: true,
    stream: body.boolean('stream') ?? false,
    includeUsage: body.object('stream_options')?.boolean('include_usage') ?? false,
    ...(logprobs === undefined ? {} : { logprobs }),
    tokenIds: body.boolean('return_token_ids') ?? false,
    ignored: ignoredFields(body, []),
  }
}

function promptInput(prompt: JsonValue | undefined): InferenceInput {
  if (typeof prompt === 'string') return { kind: 'text', text: prompt }
  if (Array.isArray(prompt) && prompt.length === 1 && typeof prompt[0] !== 'number')
    return promptInput(prompt[0] as JsonValue)
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.every(isId))
    return { kind: 'ids', ids: Int32Array.from(prompt as readonly number[]) }
  throw invalidRequest('prompt must be one text or one list of token ids', 'prompt')
}

function isId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 31
}

function wireChoice(
  choice: Choice,
  request: CompletionsRequest,
  options: ChatOptions,
  text: string,
): object {
  const entries = request.logprobs === undefined ? [] : logprobEntries(choice, options.tokenizer)
  return {
    index: choice.index,
    text,
    finish_reason: choice.sample.stop,
    logprobs:
      request.logprobs === undefined
        ? null
        : {
            tokens: entries.map(({ token }) => token),
            token_logprobs: entries.map(({ logprob }) => logprob),
            top_logprobs:
              request.logprobs === 0
                ? null
                : entries.map(({ top_logprobs }) =>
                    Object.fromEntries(top_logprobs.map(({ token, logprob }) => [token, logprob])),
                  ),
            text_offset: [],
          },
    ...(request.tokenIds || options.exposeTokenIds
      ? { token_ids: Array.from(choice.sample.ids) }
      : {}),
  }
}

export function textCompletion(
  result: CallResult,
  request: CompletionsRequest,
  options: ChatOptions,
): object {
  const withIds = request.tokenIds || options.exposeTokenIds
  return {
    id: result.id,
    object: 'text_completion',
    created: result.created,
    model: result.model,
    choices: result.choices.map((choice) => ({
      ...wireChoice(choice, request, options, choice.message.content),
      ...(withIds ? { prompt_token_ids: promptTokenIds(result.prompt) } : {}),
    })),
    usage: chatUsage(result),
  }
}

export async function* completionStream(
  call: ActiveCall,
  request: CompletionsRequest,
  options: ChatOptions,
  created: number,
): AsyncGenerator<StreamPiece, void, undefined> {
  const head = { id: call.record.id, object: 'text_completion', created, model: request.model }
  let open = request.n
  for await (const delta of call.deltas.read()) {
    if (delta.type === 'reasoning') continue
    if (delta.type === 'text') {
      const choice = { index: delta.choice, text: delta.text, finish_reason: null, logprobs: null }
      yield { text: dataEvent({ ...head, choices: [choice] }) }
      continue
    }
    open -= 1
    const choice = wireChoice(delta.reply, request, options, '')
    yield { text: dataEvent({ ...head, choices: [choice] }), terminal: open === 0 }
  }
  if (request.includeUsage)
    yield { text: dataEvent({ ...head, choices: [], usage: chatUsage(await call.result) }) }
  yield { text: 'data: [DONE]\n\n' }
}
