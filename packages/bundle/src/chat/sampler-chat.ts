import { type Renderer, type Sampler, TiltyardError } from '@tiltyard/core'

import type { Chat } from './chat.ts'

export interface SamplerChatOptions {
  /** Its owner closes it. */
  readonly sampler: Sampler
  readonly renderer: Renderer
  /** Longest reply, in tokens. Default 1,024; less where the context window has no more room. */
  readonly maxTokens?: number
  /** Default 0: the likeliest tokens. */
  readonly temperature?: number
}

/** A chat with any sampler: a checkpoint, another model of the same service, the policy itself. */
export function samplerChat({
  sampler,
  renderer,
  maxTokens = 1_024,
  temperature = 0,
}: SamplerChatOptions): Chat {
  return {
    name: sampler.version.id,
    async reply(messages, { signal, seed }) {
      const prompt = renderer.prompt({ messages })
      const room = sampler.contextWindow - prompt.length
      if (room < 1)
        throw new TiltyardError(
          'CHAT',
          `the chat's prompt takes ${prompt.length} tokens of ${sampler.contextWindow}; there is no room for a reply`,
        )
      const [sample] = await sampler.sample(
        {
          prompt,
          maxTokens: Math.min(maxTokens, room),
          temperature,
          stop: renderer.stop,
          ...(seed === undefined ? {} : { seeds: [seed] }),
        },
        { signal },
      )
      return renderer.parse(sample!.ids, { tools: [], stop: sample!.stop }).message.content
    },
  }
}
