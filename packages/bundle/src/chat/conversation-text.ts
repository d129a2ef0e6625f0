import { type Message, textOf } from '@tiltyard/core'

/** What was said, for a model that judges it: a line per message, calls and results left out. */
export function conversationText(messages: readonly Message[]): string {
  return messages
    .filter(({ role, content }) => (role === 'user' || role === 'assistant') && content !== '')
    .map(({ role, content }) => `${role}: ${textOf(content, '[image]')}`)
    .join('\n')
}

/** The JSON of a reply, alone or in a code fence. @throws SyntaxError when there is none. */
export function jsonIn(reply: string): unknown {
  const fenced = /```(?:json)?\s*\n([\s\S]*?)\n\s*```/.exec(reply)
  return JSON.parse(fenced?.[1] ?? reply)
}
