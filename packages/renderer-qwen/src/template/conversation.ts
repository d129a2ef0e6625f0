import { ConfigError, type Conversation, type Message, type ToolMessage } from '@tiltyard/core'

import { assistantBody } from './assistant.ts'
import { contentSegments, type ImageCounter } from './content.ts'
import { headSegments } from './head.ts'
import { lastQuery } from './query.ts'
import type { Scene, Segments } from './scene.ts'

/**
 * A conversation as its template writes it, without the header of a next reply.
 * @throws ConfigError for a conversation that the template refuses.
 */
export function conversationSegments(conversation: Conversation, scene: Scene): Segments {
  const { messages } = conversation
  if (messages.length === 0) {
    throw new ConfigError('conversation', [{ at: 'messages', message: 'there is no message' }])
  }
  if (messages[0]!.role === 'tool' && scene.layout.refusesToolFirst) {
    throw new ConfigError('conversation', [
      { at: 'messages.0', message: `${scene.layout.name} can't begin with a tool result` },
    ])
  }
  const query = scene.layout.think === 'none' ? -1 : lastQuery(messages, scene.layout)
  const start = messages[0]!.role === 'system' ? 1 : 0
  return [
    ...headSegments(conversation, scene),
    ...messageBlocks(messages, start, query, scene, { images: 0 }),
  ]
}

/** The blocks of the messages from `start` on. `query` is the index of the last query. */
export function messageBlocks(
  messages: readonly Message[],
  start: number,
  query: number,
  scene: Scene,
  counter: ImageCounter,
): Segments {
  const { layout, write } = scene
  const blocks: Segments[] = []
  for (let index = start; index < messages.length; index += 1) {
    const message = messages[index]!
    const at = `messages.${index}`
    if (message.role === 'tool') {
      const results: ToolMessage[] = []
      for (
        let next = messages[index];
        next?.role === 'tool';
        next = messages[index + results.length]
      )
        results.push(next)
      blocks.push(resultBlock(results, index, scene, counter))
      index += results.length - 1
    } else if (message.role === 'assistant') {
      const place = { afterQuery: index > query, last: index === messages.length - 1 }
      blocks.push(write`<|im_start|>assistant\n${assistantBody(message, place, scene)}<|im_end|>\n`)
    } else if (message.role === 'user') {
      const content = contentSegments(message.content, scene, counter, at)
      blocks.push(write`<|im_start|>user\n${content}<|im_end|>\n`)
    } else {
      if (layout.laterSystem === 'dropped') continue
      if (layout.laterSystem === 'refused') {
        throw new ConfigError('conversation', [
          { at, message: `${layout.name} takes a system message at the beginning only` },
        ])
      }
      const content = contentSegments(message.content, scene, counter, at)
      blocks.push(write`<|im_start|>system\n${content}<|im_end|>\n`)
    }
  }
  return blocks.flat()
}

/** A run of tool results in one user block. */
function resultBlock(
  results: readonly ToolMessage[],
  start: number,
  scene: Scene,
  counter: ImageCounter,
): Segments {
  const { write } = scene
  const body = results.map(({ content }, index) => {
    const segments = contentSegments(content, scene, counter, `messages.${start + index}`)
    return write`\n<tool_response>\n${segments}\n</tool_response>`
  })
  const end = scene.layout.newlineAfterResults ? '\n' : ''
  return write`<|im_start|>user${body.flat()}${end}<|im_end|>\n`
}

/** The header of the next reply, with the think block that the layout opens or closes for it. */
export function replyHeader({ layout, write, thinking }: Scene): Segments {
  if (layout.thinking === 'never') return write`<|im_start|>assistant\n`
  if (!thinking) return write`<|im_start|>assistant\n<think>\n\n</think>\n\n`
  return layout.opensThink
    ? write`<|im_start|>assistant\n<think>\n`
    : write`<|im_start|>assistant\n`
}
