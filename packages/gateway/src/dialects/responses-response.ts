import type { JsonObject } from '@tiltyard/core'

import type { ActiveCall } from '../calls/call.ts'
import { sampledTokens, type CallResult, type Choice } from '../calls/result.ts'
import { asApiError } from '../errors.ts'
import { argumentsText } from '../graph/identity.ts'
import type { StreamPiece } from '../http/event-stream.ts'
import type { ChatOptions } from './chat-response.ts'
import { logprobEntries, promptTokenIds } from './logprobs.ts'
import type { ResponsesRequest } from './responses-request.ts'

/** The items of a reply: reasoning, text, calls, in this order. Ids derive from the response's, so that every reading agrees. */
export function outputItems(
  id: string,
  choice: Choice,
  request: ResponsesRequest,
  options: ChatOptions,
): readonly JsonObject[] {
  const { content, reasoning, toolCalls = [] } = choice.message
  const status = choice.finish === 'length' ? 'incomplete' : 'completed'
  const items: JsonObject[] = []
  if (reasoning !== undefined) items.push(reasoningItem(id, reasoning))
  if (content !== '' || toolCalls.length === 0) {
    const logprobs =
      request.logprobs === undefined
        ? []
        : (logprobEntries(choice, options.tokenizer) as readonly object[] as readonly JsonObject[])
    items.push(messageItem(id, status, content, logprobs))
  }
  for (const [index, call] of toolCalls.entries())
    items.push({
      id: `fc_${index}_${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: call.id,
      name: call.name,
      arguments: argumentsText(call),
    })
  return items
}

function messageItem(
  id: string,
  status: string,
  text: string | undefined,
  logprobs: readonly JsonObject[] = [],
): JsonObject {
  const content = text === undefined ? [] : [textPart(text, logprobs)]
  return { id: `msg_${id}`, type: 'message', role: 'assistant', status, content }
}

function textPart(text: string, logprobs: readonly JsonObject[] = []): JsonObject {
  return { type: 'output_text', text, annotations: [], logprobs }
}

function reasoningItem(id: string, text: string | undefined): JsonObject {
  const summary = text === undefined ? [] : [{ type: 'summary_text', text }]
  return { id: `rs_${id}`, type: 'reasoning', summary }
}

function bare(id: string, created: number, request: ResponsesRequest): JsonObject {
  return {
    id,
    object: 'response',
    created_at: created,
    model: request.model,
    status: 'in_progress',
    output: [],
    error: null,
    incomplete_details: null,
    parallel_tool_calls: request.parallelCalls,
    previous_response_id: request.previous ?? null,
    tool_choice: 'auto',
    tools: [],
    usage: null,
  }
}

/** A whole response: `completed`, or `incomplete` when it reached the token limit. */
export function responseBody(
  result: CallResult,
  request: ResponsesRequest,
  options: ChatOptions,
): JsonObject {
  const choice = result.choices[0]!
  const isCut = choice.finish === 'length'
  const sampled = sampledTokens(result)
  const withIds = request.tokenIds || options.exposeTokenIds
  return {
    ...bare(result.id, result.created, request),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output: outputItems(result.id, choice, request, options),
    usage: {
      input_tokens: result.prompt.length,
      input_tokens_details: { cached_tokens: result.reused },
      output_tokens: sampled,
      output_tokens_details: { reasoning_tokens: choice.reasoningTokens },
      total_tokens: result.prompt.length + sampled,
    },
    ...(withIds
      ? {
          prompt_token_ids: promptTokenIds(result.prompt),
          token_ids: Array.from(choice.sample.ids),
        }
      : {}),
  }
}

/** Items open as text for them arrives; the whole response comes with the last event. */
export async function* responseStream(
  call: ActiveCall,
  request: ResponsesRequest,
  options: ChatOptions,
  created: number,
): AsyncGenerator<StreamPiece, void, undefined> {
  const { id } = call.record
  let sequence = 0
  const event = (type: string, data: JsonObject, terminal = false): StreamPiece => {
    const body = { type, sequence_number: sequence, ...data }
    sequence += 1
    return { text: `event: ${type}\ndata: ${JSON.stringify(body)}\n\n`, terminal }
  }
  const open = bare(id, created, request)
  yield event('response.created', { response: open })
  yield event('response.in_progress', { response: open })

  const writer = itemWriter(id, event)
  try {
    for await (const delta of call.deltas.read()) {
      if (delta.type === 'end') yield* writer.finish(outputItems(id, delta.reply, request, options))
      else if (delta.type === 'text') yield* writer.text(delta.text)
      else yield* writer.reasoning(delta.text)
    }
    const response = responseBody(await call.result, request, options)
    const isCut = response['status'] === 'incomplete'
    yield event(isCut ? 'response.incomplete' : 'response.completed', { response }, true)
  } catch (error) {
    const { code, message } = asApiError(error)
    const response = { ...open, status: 'failed', error: { code, message } }
    yield event('response.failed', { response })
    throw error
  }
}

type MakeEvent = (type: string, data: JsonObject) => StreamPiece

/** Writes the items of one reply in their order, opening each when its first text comes. */
function itemWriter(id: string, event: MakeEvent) {
  let index = 0
  let open: { readonly kind: 'text' | 'reasoning'; text: string } | undefined

  function* begin(kind: 'text' | 'reasoning'): Generator<StreamPiece> {
    if (open?.kind === kind) return
    yield* close()
    open = { kind, text: '' }
    const at = { output_index: index }
    if (kind === 'text') {
      const item = messageItem(id, 'in_progress', undefined)
      yield event('response.output_item.added', { ...at, item })
      const place = { item_id: item['id']!, ...at, content_index: 0 }
      yield event('response.content_part.added', { ...place, part: textPart('') })
    } else {
      const item = reasoningItem(id, undefined)
      yield event('response.output_item.added', { ...at, item })
      const place = { item_id: item['id']!, ...at, summary_index: 0 }
      const part = { type: 'summary_text', text: '' }
      yield event('response.reasoning_summary_part.added', { ...place, part })
    }
  }

  function* close(item?: JsonObject): Generator<StreamPiece> {
    if (open === undefined) return
    const { kind, text } = open
    const at = { output_index: index }
    if (kind === 'text') {
      const whole = item ?? messageItem(id, 'completed', text)
      const place = { item_id: whole['id']!, ...at, content_index: 0 }
      yield event('response.output_text.done', { ...place, text, logprobs: [] })
      yield event('response.content_part.done', { ...place, part: textPart(text) })
      yield event('response.output_item.done', { ...at, item: whole })
    } else {
      const whole = item ?? reasoningItem(id, text)
      const place = { item_id: whole['id']!, ...at, summary_index: 0 }
      yield event('response.reasoning_summary_text.done', { ...place, text })
      const part = { type: 'summary_text', text }
      yield event('response.reasoning_summary_part.done', { ...place, part })
      yield event('response.output_item.done', { ...at, item: whole })
    }
    index += 1
    open = undefined
  }

  return {
    *text(delta: string): Generator<StreamPiece> {
      yield* begin('text')
      open!.text += delta
      const place = { item_id: `msg_${id}`, output_index: index, content_index: 0 }
      yield event('response.output_text.delta', { ...place, delta, logprobs: [] })
    },
    *reasoning(delta: string): Generator<StreamPiece> {
      yield* begin('reasoning')
      open!.text += delta
      const place = { item_id: `rs_${id}`, output_index: index, summary_index: 0 }
      yield event('response.reasoning_summary_text.delta', { ...place, delta })
    },
    *finish(items: readonly JsonObject[]): Generator<StreamPiece> {
      const message = items.find(({ type }) => type === 'message')
      if (message !== undefined) yield* begin('text')
      yield* close(message)
      for (const item of items.filter(({ type }) => type === 'function_call')) {
        const at = { output_index: index }
        const place = { item_id: item['id']!, ...at }
        const empty = { ...item, status: 'in_progress', arguments: '' }
        yield event('response.output_item.added', { ...at, item: empty })
        yield event('response.function_call_arguments.delta', {
          ...place,
          delta: item['arguments']!,
        })
        yield event('response.function_call_arguments.done', {
          ...place,
          arguments: item['arguments']!,
        })
        yield event('response.output_item.done', { ...at, item })
        index += 1
      }
    },
  }
}
