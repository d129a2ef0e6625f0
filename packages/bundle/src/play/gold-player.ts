import type { AssistantMessage, Message } from '@tiltyard/core'

import type { Task } from '../task.ts'
import type { Player } from './play-task.ts'

/** A player that does what a task's gold says: its calls, one in a reply, then the text of each turn. */
export function goldPlayer({ gold }: Pick<Task, 'gold'>): Player {
  return ({ messages }) => {
    const replies = messages.filter((message) => message.role === 'assistant')
    const called = replies.filter(isCall).length
    const call = gold?.calls[called]
    if (call !== undefined) {
      const toolCalls = [{ id: `call_${called}`, ...call }]
      return { role: 'assistant', content: '', toolCalls }
    }
    return { role: 'assistant', content: gold?.replies?.[replies.length - called] ?? '' }
  }
}

function isCall(message: Message & AssistantMessage): boolean {
  return (message.toolCalls?.length ?? 0) > 0
}
