import { hash } from 'node:crypto'

import {
  isRunnable,
  type AssistantMessage,
  type Content,
  type JsonValue,
  type Message,
  type ToolCall,
  type ToolSpec,
} from '@tiltyard/core'

/** Arguments in one spelling: keys sorted, no spaces; what is no JSON stays as it is. */
function canonicalArguments(raw: string): string {
  try {
    return canonicalJson(JSON.parse(raw) as JsonValue)
  } catch {
    return raw
  }
}

function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`
}

/** The arguments as the client gets them: the model's own text where it is a JSON object or can't be read, else the typed arguments. */
export function argumentsText(call: ToolCall): string {
  if (!isRunnable(call)) return call.rawArguments
  const raw = call.rawArguments
  return raw !== undefined && isJsonObject(raw) ? raw : JSON.stringify(call.arguments)
}

function isJsonObject(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * What makes two messages the same to the graph. Reasoning is apart: clients drop it, and that is no other message.
 * Parts of texts are joined; arguments count by their meaning.
 */
export function messageIdentity(message: Message): string {
  if (message.role === 'assistant') return assistantIdentity(message)
  const text = contentIdentity(message.content)
  if (message.role === 'tool') return `t${message.toolCallId}\u0000${text}`
  return (message.role === 'user' ? 'u' : 's') + text
}

function contentIdentity(content: Content): string {
  if (typeof content === 'string') return content
  return content
    .map((part) =>
      part.type === 'text' ? part.text : `\u0002${hash('sha256', part.data, 'base64')}`,
    )
    .join('')
}

function assistantIdentity({ content, toolCalls = [] }: AssistantMessage): string {
  if (toolCalls.length === 0) return `a${content}`
  const calls = toolCalls.map(
    (call) => `\u0000${call.id}\u0000${call.name}\u0000${canonicalArguments(argumentsText(call))}`,
  )
  return `a${content}${calls.join('')}`
}

/** Ids of a message's calls, as one key; empty when it has none. */
export function callIdsKey({ toolCalls = [] }: AssistantMessage): string {
  return toolCalls.map(({ id }) => id).join('\u0000')
}

/** How strictly an echoed reply must equal the sampled one. */
export type EchoTolerance = 'strict' | 'canonical' | 'ids'

/** How an echo differs from what was sampled; undefined when it is the same to this tolerance. */
export function echoDifference(
  sampled: AssistantMessage,
  echo: AssistantMessage,
  tolerance: EchoTolerance,
): 'edited_text' | 'edited_args' | undefined {
  if (sampled.content !== echo.content) return 'edited_text'
  const calls = sampled.toolCalls ?? []
  const echoed = echo.toolCalls ?? []
  if (calls.length !== echoed.length) return 'edited_args'
  for (const [index, call] of calls.entries()) {
    const other = echoed[index]!
    if (call.id !== other.id || call.name !== other.name) return 'edited_args'
    if (!isSameArguments(call, other, tolerance)) return 'edited_args'
  }
  return undefined
}

function isSameArguments(call: ToolCall, echo: ToolCall, tolerance: EchoTolerance): boolean {
  const own = argumentsText(call)
  const other = argumentsText(echo)
  if (own === other) return true
  if (tolerance === 'strict') return false
  if (tolerance === 'ids') return true
  const canonical = canonicalArguments(other)
  if (canonicalArguments(own) === canonical) return true
  // Clients repair arguments that are no JSON object: to an empty one, to the text encoded once more, or to as much as can be read.
  if (isRunnable(call)) return false
  return canonical === '{}' || canonical === JSON.stringify(own) || isReadablePart(other, own)
}

/** Whether an object is the start of a text that is none, closed: `{"a": 1}` of `{"a": 1, "b":`. */
function isReadablePart(object: string, text: string): boolean {
  if (!isJsonObject(object)) return false
  const open = withoutSpace(object).replace(/["\]}]+$/, '')
  return withoutSpace(text).startsWith(open)
}

function withoutSpace(text: string): string {
  return text.replaceAll(/\s/g, '')
}

/** Policy and tools, in order: others make another context. */
export function contextKey(alias: string, tools: readonly ToolSpec[]): string {
  if (tools.length === 0) return alias
  return `${alias} ${hash('sha256', JSON.stringify(tools), 'base64')}`
}
