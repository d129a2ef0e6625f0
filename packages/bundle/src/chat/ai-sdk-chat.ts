import { textOf } from '@tiltyard/core'

import type { Chat, ChatMessage } from './chat.ts'

/** What of an AI SDK provider's language model is used, in versions 2 and 3 of its specification. */
export interface AiSdkModel {
  readonly provider: string
  readonly modelId: string
  doGenerate(options: {
    readonly prompt: AiSdkPrompt
    readonly abortSignal?: AbortSignal
    readonly temperature?: number
    readonly seed?: number
  }): PromiseLike<{
    readonly content: readonly { readonly type: string; readonly text?: string }[]
  }>
}

type AiSdkPrompt = (
  | { role: 'system'; content: string }
  | { role: 'user' | 'assistant'; content: { type: 'text'; text: string }[] }
)[]

/** A chat with a model of an AI SDK provider. @param temperature Default 0. */
export function aiSdkChat(model: AiSdkModel, { temperature = 0 } = {}): Chat {
  return {
    name: `${model.provider}/${model.modelId}`,
    async reply(messages, { signal, seed }) {
      const { content } = await model.doGenerate({
        prompt: messages.map(promptMessage),
        abortSignal: signal,
        temperature,
        ...(seed === undefined ? {} : { seed }),
      })
      return content.flatMap(({ type, text }) => (type === 'text' ? [text ?? ''] : [])).join('')
    },
  }
}

function promptMessage({ role, content }: ChatMessage): AiSdkPrompt[number] {
  const text = textOf(content, '[image]')
  return role === 'system' ? { role, content: text } : { role, content: [{ type: 'text', text }] }
}
