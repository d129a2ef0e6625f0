import type {
  AssistantMessage,
  JsonObject,
  JsonValue,
  Message,
  ToolCall,
  ToolSpec,
} from '@tiltyard/core'

import type { InferenceRequest } from '../calls/request.ts'
import { invalidRequest, unsupportedParameter } from '../errors.ts'
import { contentOf, contentText, echoedCall, toolSpec } from './content.ts'
import { isObject, type Fields } from './fields.ts'
import type { ItemMemory } from './item-memory.ts'
import {
  ignoredFields,
  readFormat,
  readToolChoice,
  refuseBending,
  samplingFields,
  tokenLimit,
  type Leniency,
} from './sampling-fields.ts'

export interface ResponsesRequest extends InferenceRequest {
  /** The whole input as items, those of earlier responses and references resolved; instructions apart. */
  readonly items: readonly JsonObject[]
  readonly previous?: string
}

/** @throws ApiError naming the field that can't be honoured, or the item that the attempt doesn't know. */
export function readResponsesRequest(
  body: Fields,
  leniency: Leniency,
  memory: ItemMemory,
): ResponsesRequest {
  refuseBending(body)
  for (const name of ['conversation', 'prompt', 'background'])
    if (body.raw(name) !== undefined && body.raw(name) !== false)
      throw unsupportedParameter(name, `${name} is not supported; send input`)
  const ignored: string[] = []
  const choice = readToolChoice(body, leniency, ignored)
  readFormat(body.object('text')?.object('format'), 'text.format', leniency, ignored)
  const previous = body.string('previous_response_id')
  const before = previous === undefined ? [] : memory.response(previous)
  if (before === undefined)
    throw invalidRequest(
      `this attempt has no response "${previous?.slice(0, 100)}"`,
      'previous_response_id',
    )
  const items = [...before, ...inputItems(body.raw('input')).map((item) => resolve(item, memory))]
  const instructions = body.string('instructions')
  const head: Message[] =
    instructions === undefined || instructions === ''
      ? []
      : [{ role: 'system', content: instructions }]
  const tools = (body.array('tools') ?? []).map(responsesTool)
  const maxTokens = tokenLimit(body, 'max_output_tokens')
  const include = body.array('include') ?? []
  const topLogprobs = body.integer('top_logprobs', 0, 20) ?? 0
  const withLogprobs = topLogprobs > 0 || include.includes('message.output_text.logprobs')
  return {
    route: 'responses',
    model: body.string('model') ?? '',
    input: {
      kind: 'conversation',
      conversation: {
        messages: [...head, ...itemMessages(items)],
        ...(choice === 'none' || tools.length === 0 ? {} : { tools }),
      },
    },
    n: 1,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...samplingFields(body),
    stop: [],
    calls: choice !== 'none',
    parallelCalls: body.boolean('parallel_tool_calls') ?? true,
    stream: body.boolean('stream') ?? false,
    ...(withLogprobs ? { logprobs: topLogprobs } : {}),
    tokenIds: body.boolean('return_token_ids') ?? false,
    ignored: ignoredFields(body, ignored),
    items,
    ...(previous === undefined ? {} : { previous }),
  }
}

function inputItems(input: JsonValue | undefined): readonly JsonObject[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (!Array.isArray(input))
    throw invalidRequest('input must be a text or a list of items', 'input')
  return (input as readonly JsonValue[]).map((item) => {
    if (isObject(item)) return item
    throw invalidRequest('each item of input must be an object', 'input')
  })
}

function resolve(item: JsonObject, memory: ItemMemory): JsonObject {
  if (item['type'] !== 'item_reference') return item
  const id = shortText(item['id'])
  const known = memory.item(id)
  if (known !== undefined) return known
  throw invalidRequest(`this attempt has no item "${id}"`, 'input')
}

/** Items as messages. What the model said in one reply (reasoning, text, calls) is one assistant message. */
function itemMessages(items: readonly JsonObject[]): readonly Message[] {
  const messages: Message[] = []
  let reply: { content: string; reasoning: string; calls: ToolCall[] } | undefined
  const close = () => {
    if (reply === undefined) return
    const { content, reasoning, calls } = reply
    const message: AssistantMessage = {
      role: 'assistant',
      content,
      ...(reasoning === '' ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { toolCalls: calls }),
    }
    messages.push(message)
    reply = undefined
  }
  const open = () => (reply ??= { content: '', reasoning: '', calls: [] })

  for (const [index, item] of items.entries()) {
    const param = `input[${index}]`
    const role = item['role']
    const type = item['type'] ?? 'message'
    if (type === 'message' && role === 'assistant')
      open().content += contentText(item['content'], `${param}.content`)
    else if (type === 'function_call') open().calls.push(itemCall(item, param))
    else if (type === 'reasoning') open().reasoning += reasoningText(item)
    else {
      close()
      messages.push(inputMessage(item, type, param))
    }
  }
  close()
  return messages
}

function inputMessage(item: JsonObject, type: JsonValue, param: string): Message {
  const role = item['role']
  if (type === 'function_call_output') {
    const id = item['call_id']
    if (typeof id !== 'string') throw invalidRequest(`${param} has no call_id`, param)
    return { role: 'tool', toolCallId: id, content: contentOf(item['output'], `${param}.output`) }
  }
  if (type !== 'message')
    throw invalidRequest(`${param} is of a type that is not taken: ${shortText(type)}`, param)
  const at = `${param}.content`
  if (role === 'user') return { role, content: contentOf(item['content'], at) }
  if (role === 'system' || role === 'developer')
    return { role: 'system', content: contentText(item['content'], at) }
  throw invalidRequest(
    `${param}.role must be system, developer, user or assistant`,
    `${param}.role`,
  )
}

function itemCall(item: JsonObject, param: string): ToolCall {
  const { call_id: id, name, arguments: raw } = item
  if (typeof id !== 'string' || typeof name !== 'string')
    throw invalidRequest(`${param} lacks call_id or name`, param)
  return echoedCall(id, name, typeof raw === 'string' ? raw : '{}')
}

function reasoningText(item: JsonObject): string {
  const parts = [item['content'], item['summary']].find(
    (list) => Array.isArray(list) && list.length > 0,
  )
  if (!Array.isArray(parts)) return ''
  return (parts as readonly JsonValue[])
    .map((part) => (isObject(part) && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('')
}

function responsesTool(tool: JsonValue): ToolSpec {
  if (!isObject(tool)) throw invalidRequest('each of tools must be an object', 'tools')
  if (tool['type'] !== 'function')
    throw unsupportedParameter(
      'tools',
      `tools of type "${shortText(tool['type'])}" run on a vendor's servers; send function tools`,
    )
  return toolSpec(tool, 'tools')
}

/** A text from outside, for an error message. */
function shortText(value: JsonValue | undefined): string {
  return (typeof value === 'string' ? value : JSON.stringify(value ?? null)).slice(0, 100)
}
