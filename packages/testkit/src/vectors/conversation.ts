import type { AssistantMessage, Content, Conversation, Message, ToolSpec } from '@tiltyard/core'
import { toolCall } from '@tiltyard/core/rendering'

import type { VectorMessage, VectorTool } from './format.ts'

/** A vector's messages and tools, which are in OpenAI's form, as a conversation. */
export function vectorConversation(
  messages: readonly VectorMessage[],
  tools: readonly VectorTool[] | null | undefined,
): Conversation {
  return { messages: messages.map(vectorMessage), tools: vectorTools(tools) }
}

export function vectorTools(tools: readonly VectorTool[] | null | undefined): readonly ToolSpec[] {
  // Keys that a tool has beside ours are printed by templates too, so they stay.
  return (tools ?? []).map((tool) => (tool['function'] ?? tool) as unknown as ToolSpec)
}

/** Whether tools stand there without the wrapper that servers get. */
export function hasBareTools(tools: readonly VectorTool[] | null | undefined): boolean {
  return (tools ?? []).some((tool) => !('function' in tool))
}

export function vectorMessage(message: VectorMessage): Message {
  const content = contentOf(message)
  const { role } = message
  if (role === 'assistant') return assistantOf(message)
  if (role !== 'tool') return { role, content }
  return { role, content, toolCallId: message.tool_call_id ?? 'call_0' }
}

function assistantOf(message: VectorMessage): AssistantMessage {
  const content = contentOf(message)
  const calls = (message.tool_calls ?? []).map((call, index) => {
    const { name, arguments: given } = call.function
    return toolCall(call.id ?? `call_${index}`, name, given)
  })
  const reasoning = message.reasoning_content
  return {
    role: 'assistant',
    content: typeof content === 'string' ? content : '',
    ...(typeof reasoning === 'string' ? { reasoning } : {}),
    ...(calls.length === 0 ? {} : { toolCalls: calls }),
  }
}

/** An image of a vector has no bytes; what matters is its place. */
function contentOf({ content }: VectorMessage): Content {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => {
    return part.type === 'text'
      ? { type: 'text', text: part.text ?? '' }
      : { type: 'image', format: 'png', data: new Uint8Array(0), width: 224, height: 224 }
  })
}
