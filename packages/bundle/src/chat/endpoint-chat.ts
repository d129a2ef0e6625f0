import {
  type Clock,
  ConfigError,
  isPlainAddress,
  systemClock,
  textOf,
  TiltyardError,
} from '@tiltyard/core'
import { z } from 'zod'

import type { Chat, ChatMessage, ChatOptions } from './chat.ts'

export interface EndpointChatOptions {
  /** Base of an OpenAI-compatible API, up to and with `/v1`. */
  readonly url: string
  readonly model: string
  /** Sent as a bearer token; never logged, never part of an error. */
  readonly apiKey?: string
  /** Further members of each request, such as `temperature` or `max_tokens`. Default: `{ temperature: 0 }`. */
  readonly body?: Readonly<Record<string, unknown>>
  /** How often a request is tried in all. Default 4; busy (429), failed (5xx) and broken ones are tried again. */
  readonly tries?: number
  /** Default: the global one. */
  readonly fetch?: typeof fetch
  readonly clock?: Clock
}

/** Longest wait before another try, in milliseconds, also when the service asks for a longer one. */
export const MAX_CHAT_RETRY_MS = 30_000

const answerSchema = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1),
})

/** A chat with an OpenAI-compatible endpoint: a hosted model, a server of one's own, a gateway. */
export function endpointChat({
  url,
  model,
  apiKey,
  body = { temperature: 0 },
  tries = 4,
  fetch: send = fetch,
  clock = systemClock,
}: EndpointChatOptions): Chat {
  if (!isPlainAddress(url))
    throw new ConfigError('endpointChat', [
      {
        at: 'url',
        message: 'an address without user, query or fragment; `apiKey` is for the key',
      },
    ])
  const target = `${url.replace(/\/+$/, '')}/chat/completions`
  const headers = {
    'content-type': 'application/json',
    ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
  }
  return {
    name: model,
    async reply(messages, options) {
      const request = JSON.stringify(requestOf(messages, { model, body }, options))
      const { signal } = options
      for (let tried = 1; ; tried += 1) {
        const wait = Math.min(500 * 2 ** tried, MAX_CHAT_RETRY_MS)
        let response: Response
        try {
          response = await send(target, { method: 'POST', headers, body: request, signal })
        } catch (cause) {
          signal.throwIfAborted()
          if (tried >= tries) throw failure(model, 'could not be reached', cause)
          await clock.sleep(wait, signal)
          continue
        }
        if (response.ok) return textOfAnswer(model, await response.json().catch(() => undefined))
        await response.body?.cancel()
        const { status } = response
        if (tried >= tries || !(status === 429 || status >= 500))
          throw failure(model, `answered with status ${status}`)
        await clock.sleep(Math.max(wait, askedWait(response)), signal)
      }
    },
  }
}

function requestOf(
  messages: readonly ChatMessage[],
  { model, body }: Pick<EndpointChatOptions, 'model' | 'body'>,
  { seed }: ChatOptions,
) {
  return {
    model,
    messages: messages.map(({ role, content }) => ({ role, content: textOf(content, '[image]') })),
    ...(seed === undefined ? {} : { seed }),
    ...body,
  }
}

function textOfAnswer(model: string, answer: unknown): string {
  const read = answerSchema.safeParse(answer)
  if (!read.success) throw failure(model, 'gave an answer that is no chat completion')
  return read.data.choices[0]!.message.content ?? ''
}

/** What `retry-after` asks for, in milliseconds. */
function askedWait({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? 0)
  return Number.isFinite(seconds) ? Math.min(seconds * 1_000, MAX_CHAT_RETRY_MS) : 0
}

function failure(model: string, what: string, cause?: unknown): TiltyardError {
  return new TiltyardError('CHAT', `the chat's model "${model}" ${what}`, { cause })
}
