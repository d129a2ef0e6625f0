import type { AssistantMessage, Tokenizer } from '@tiltyard/core'

import type { ActiveCall } from '../calls/call.ts'
import { sampledTokens, type CallResult, type Choice } from '../calls/result.ts'
import { argumentsText } from '../graph/identity.ts'
import { dataEvent, type StreamPiece } from '../http/event-stream.ts'
import type { ChatRequest } from './chat-request.ts'
import { logprobEntries, promptTokenIds } from './logprobs.ts'

/** What a chat reply looks like. */
export interface ChatOptions {
  readonly tokenizer: Tokenizer | undefined
  /** Members of a message that hold the reasoning. */
  readonly reasoningFields: readonly ('reasoning_content' | 'reasoning')[]
  readonly exposeTokenIds: boolean
}

export function chatCompletion(
  result: CallResult,
  request: ChatRequest,
  options: ChatOptions,
): object {
  const withIds = request.tokenIds || options.exposeTokenIds
  return {
    id: result.id,
    object: 'chat.completion',
    created: result.created,
    model: result.model,
    choices: result.choices.map((choice) => ({
      index: choice.index,
      message: wireMessage(choice.message, options),
      finish_reason: choice.finish,
      ...choiceExtras(choice, request, options),
    })),
    usage: chatUsage(result),
    ...(withIds ? { prompt_token_ids: promptTokenIds(result.prompt) } : {}),
  }
}

/** Token ids never lie in the message: clients echo what they find there. */
function choiceExtras(choice: Choice, request: ChatRequest, options: ChatOptions): object {
  const withIds = request.tokenIds || options.exposeTokenIds
  return {
    logprobs:
      request.logprobs === undefined
        ? null
        : { content: logprobEntries(choice, options.tokenizer), refusal: null },
    ...(withIds ? { token_ids: Array.from(choice.sample.ids) } : {}),
  }
}

function wireMessage(message: AssistantMessage, { reasoningFields }: ChatOptions): object {
  const { content, reasoning, toolCalls = [] } = message
  return {
    role: 'assistant',
    content: content === '' && toolCalls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning === undefined
      ? {}
      : Object.fromEntries(reasoningFields.map((field) => [field, reasoning]))),
    ...(toolCalls.length === 0
      ? {}
      : {
          tool_calls: toolCalls.map((call) => ({
            id: call.id,
            type: 'function',
            function: { name: call.name, arguments: argumentsText(call) },
          })),
        }),
  }
}

export function chatUsage(result: CallResult): object {
  const completion = sampledTokens(result)
  return {
    prompt_tokens: result.prompt.length,
    completion_tokens: completion,
    total_tokens: result.prompt.length + completion,
    prompt_tokens_details: { cached_tokens: result.reused },
    completion_tokens_details: {
      reasoning_tokens: result.choices.reduce((sum, choice) => sum + choice.reasoningTokens, 0),
    },
  }
}

/** Characters of a call's arguments in one delta. */
const ARGUMENT_PIECE = 256

/** Role, deltas, one finish chunk per choice, usage if asked for, `[DONE]`. */
export async function* chatStream(
  call: ActiveCall,
  request: ChatRequest,
  options: ChatOptions,
  created: number,
): AsyncGenerator<StreamPiece, void, undefined> {
  const withIds = request.tokenIds || options.exposeTokenIds
  const head = {
    id: call.record.id,
    object: 'chat.completion.chunk',
    created,
    model: request.model,
    ...(request.includeUsage ? { usage: null } : {}),
  }
  const chunk = (
    index: number,
    delta: object,
    finish: string | null = null,
    more: object = {},
    root: object = {},
  ) => {
    const choice = { index, delta, finish_reason: finish, logprobs: null, ...more }
    return dataEvent({ ...head, ...root, choices: [choice] })
  }

  for (let index = 0; index < request.n; index += 1) {
    const ids = withIds && index === 0 ? { prompt_token_ids: promptTokenIds(call.prompt) } : {}
    yield { text: chunk(index, { role: 'assistant', content: '' }, null, {}, ids) }
  }
  let open = request.n
  for await (const delta of call.deltas.read()) {
    if (delta.type === 'text') yield { text: chunk(delta.choice, { content: delta.text }) }
    else if (delta.type === 'reasoning') {
      const fields = options.reasoningFields.map((field) => [field, delta.text])
      yield { text: chunk(delta.choice, Object.fromEntries(fields)) }
    } else {
      const { reply, choice } = delta
      for (const piece of callDeltas(reply)) yield { text: chunk(choice, piece) }
      open -= 1
      const extras = choiceExtras(reply, request, options)
      yield { text: chunk(choice, {}, reply.finish, extras), terminal: open === 0 }
    }
  }
  if (request.includeUsage) {
    const usage = chatUsage(await call.result)
    yield { text: dataEvent({ ...head, choices: [], usage }) }
  }
  yield { text: 'data: [DONE]\n\n' }
}

/** A call's first delta has index, id and name; later ones have pieces of the arguments only. */
function* callDeltas({ message }: Choice): Generator<object> {
  for (const [index, call] of (message.toolCalls ?? []).entries()) {
    const named = {
      index,
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: '' },
    }
    yield { tool_calls: [named] }
    const text = argumentsText(call)
    for (let at = 0; at < text.length; at += ARGUMENT_PIECE) {
      const piece = text.slice(at, at + ARGUMENT_PIECE)
      yield { tool_calls: [{ index, function: { arguments: piece } }] }
    }
  }
}
