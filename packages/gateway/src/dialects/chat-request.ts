import type { AssistantMessage, JsonObject, JsonValue, Message, ToolSpec } from '@tiltyard/core'

import type { InferenceRequest } from '../calls/request.ts'
import { invalidRequest, unsupportedParameter } from '../errors.ts'
import { contentOf, contentText, echoedCall, toolSpec } from './content.ts'
import { isObject, type Fields } from './fields.ts'
import {
  ignoredFields,
  readFormat,
  readToolChoice,
  refuseBending,
  samplingFields,
  stopTexts,
  tokenLimit,
  type Leniency,
} from './sampling-fields.ts'

/** What only the chat dialect asks: how its stream ends. */
export interface ChatRequest extends InferenceRequest {
  readonly includeUsage: boolean
}

/** @throws ApiError naming the field that can't be honoured. */
export function readChatRequest(body: Fields, leniency: Leniency, maxN: number): ChatRequest {
  for (const name of ['functions', 'function_call'])
    if (body.raw(name) !== undefined)
      throw unsupportedParameter(name, `${name} is the old form; send tools`)
  refuseBending(body)
  const ignored: string[] = []
  const choice = readToolChoice(body, leniency, ignored)
  readFormat(body.object('response_format'), 'response_format', leniency, ignored)
  const tools = (body.array('tools') ?? []).map(chatTool)
  const messages = joinReplies((body.array('messages') ?? []).map(chatMessage))
  const maxTokens = tokenLimit(body, 'max_tokens', 'max_completion_tokens')
  const topLogprobs = body.integer('top_logprobs', 0, 20)
  const logprobs = body.boolean('logprobs') === true || (topLogprobs ?? 0) > 0
  const includeUsage = body.object('stream_options')?.boolean('include_usage') ?? false
  return {
    route: 'chat/completions',
    model: body.string('model') ?? '',
    input: {
      kind: 'conversation',
      conversation: { messages, ...(choice === 'none' || tools.length === 0 ? {} : { tools }) },
    },
    n: body.integer('n', 1, maxN) ?? 1,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...samplingFields(body),
    stop: stopTexts(body),
    calls: choice !== 'none',
    parallelCalls: body.boolean('parallel_tool_calls') ?? true,
    stream: body.boolean('stream') ?? false,
    includeUsage,
    ...(logprobs ? { logprobs: topLogprobs ?? 0 } : {}),
    tokenIds: body.boolean('return_token_ids') ?? false,
    ignored: ignoredFields(body, ignored),
  }
}

function chatTool(tool: JsonValue): ToolSpec {
  const definition = isObject(tool) && tool['type'] === 'function' ? tool['function'] : undefined
  if (!isObject(definition))
    throw invalidRequest('each of tools must be {"type": "function", "function": {…}}', 'tools')
  return toolSpec(definition, 'tools')
}

function chatMessage(message: JsonValue, index: number): Message {
  const param = `messages[${index}]`
  if (!isObject(message)) throw invalidRequest(`${param} must be an object`, param)
  const role = message['role']
  const known = ['system', 'developer', 'user', 'assistant', 'tool'].includes(role as string)
  if (!known)
    throw invalidRequest(
      `${param}.role must be system, developer, user, assistant or tool`,
      `${param}.role`,
    )
  const at = `${param}.content`
  if (role === 'assistant')
    return assistantMessage(message, contentText(message['content'], at), param)
  if (role === 'user') return { role, content: contentOf(message['content'], at) }
  if (role !== 'tool') return { role: 'system', content: contentText(message['content'], at) }
  const content = contentOf(message['content'], at)
  const { tool_call_id: id, name } = message
  if (typeof id !== 'string') throw invalidRequest(`${param} has no tool_call_id`, param)
  return { role, toolCallId: id, content, ...(typeof name === 'string' ? { name } : {}) }
}

/** Reasoning, text and calls of one reply as one message: the Agents SDK sends them back as up to three. */
function joinReplies(messages: readonly Message[]): readonly Message[] {
  const joined: Message[] = []
  for (const message of messages) {
    const before = joined.at(-1)
    if (message.role === 'assistant' && before?.role === 'assistant' && isRest(before, message))
      joined.splice(-1, 1, { ...before, ...message, content: before.content + message.content })
    else joined.push(message)
  }
  return joined
}

/** Whether a message has only what comes after all that the one before it has: calls after text, both after reasoning. */
function isRest(before: AssistantMessage, message: AssistantMessage): boolean {
  if (before.toolCalls !== undefined || message.reasoning !== undefined) return false
  if (before.content === '') return before.reasoning !== undefined
  return message.content === '' && message.toolCalls !== undefined
}

function assistantMessage(message: JsonObject, content: string, param: string): AssistantMessage {
  const given = message['tool_calls'] ?? []
  const calls = (Array.isArray(given) ? (given as readonly JsonValue[]) : []).map((call) => {
    const { id, function: called } = isObject(call) ? call : {}
    const { name, arguments: raw } = isObject(called) ? called : {}
    if (typeof id !== 'string' || typeof name !== 'string')
      throw invalidRequest(`a call of ${param} lacks id or name`, param)
    return echoedCall(id, name, typeof raw === 'string' ? raw : JSON.stringify(raw ?? {}))
  })
  const reasoning = message['reasoning_content'] ?? message['reasoning']
  return {
    role: 'assistant',
    content,
    ...(typeof reasoning === 'string' && reasoning !== '' ? { reasoning } : {}),
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  }
}
