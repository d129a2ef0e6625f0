import { ConfigError, textOf, type Message } from '@tiltyard/core'
import { pythonTrim } from '@tiltyard/core/rendering'

import type { Layout } from '../layouts/layout.ts'

/** Whether a user message asks something: one that looks like a tool result doesn't. */
export function isQuery(message: Message, { needsQuery }: Layout): boolean {
  if (message.role !== 'user') return false
  // The older layouts look at plain text only; the newer ones at what they would print.
  if (!needsQuery && typeof message.content !== 'string') return false
  const text = textOf(message.content, '\uFFFC')
  const seen = needsQuery ? pythonTrim(text) : text
  return !(seen.startsWith('<tool_response>') && seen.endsWith('</tool_response>'))
}

/**
 * The index of the last user message that asks something. Think blocks stand after it only.
 * @throws ConfigError when there is none and the layout needs one.
 */
export function lastQuery(messages: readonly Message[], layout: Layout): number {
  const index = messages.findLastIndex((message) => isQuery(message, layout))
  if (index !== -1) return index
  if (!layout.needsQuery) return messages.length - 1
  throw new ConfigError('conversation', [
    { at: 'messages', message: `${layout.name} needs a user message; there is none` },
  ])
}
