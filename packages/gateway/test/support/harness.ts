import type { Message, PlayedReply, PlayRecorder, Renderer, ToolSpec } from '@tiltyard/core'

import {
  createGateway,
  type Attempt,
  type AttemptOptions,
  type Gateway,
  type GatewayOptions,
} from '../../src/index.ts'
import { byteRenderer } from './byte-renderer.ts'
import { byteSampler, type Answer, type ByteSampler } from './sampler.ts'

/** What a recorder was told, in order. */
export interface Recorded extends PlayRecorder {
  readonly replies: PlayedReply[]
  readonly log: string[]
  readonly messages: Message[]
}

export function recorded(): Recorded {
  const replies: PlayedReply[] = []
  const log: string[] = []
  const messages: Message[] = []
  return {
    replies,
    log,
    messages,
    async conversation(shown) {
      log.push(`conversation ${shown.length}`)
      messages.push(...shown)
    },
    async reply(played) {
      log.push('reply')
      replies.push(played)
    },
    async observation(added, calls) {
      log.push(`observation ${added.length} ${calls.length}`)
      messages.push(...added)
    },
  }
}

export interface Bench {
  readonly gateway: Gateway
  readonly attempt: Attempt
  readonly sampler: ByteSampler
  readonly record: Recorded
  readonly post: (route: string, body: object, init?: RequestInit) => Promise<Response>
  readonly chat: (
    messages: readonly object[],
    more?: object,
    init?: RequestInit,
  ) => Promise<ChatReply>
}

interface ChatReply {
  readonly id: string
  readonly choices: readonly {
    readonly index: number
    readonly message: WireMessage
    readonly finish_reason: string
    readonly logprobs: {
      readonly content: readonly {
        readonly token: string
        readonly logprob: number
        readonly bytes: readonly number[]
        readonly top_logprobs: readonly object[]
      }[]
    } | null
    readonly token_ids?: readonly number[]
  }[]
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly prompt_tokens_details: { readonly cached_tokens: number }
  }
  readonly prompt_token_ids?: readonly number[]
  readonly error?: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string
  }
  readonly status: number
  readonly headers: Headers
}

/** An event of a chat stream. */
export interface Chunk {
  readonly choices: readonly {
    readonly index: number
    readonly delta: {
      readonly content?: string
      readonly reasoning_content?: string
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly function: { readonly name?: string; readonly arguments: string }
      }[]
    }
    readonly finish_reason: string | null
  }[]
  readonly usage?: object | null
}

export interface WireMessage {
  readonly role: string
  readonly content: string | null
  readonly reasoning_content?: string
  readonly reasoning?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

export interface BenchOptions {
  readonly gateway?: GatewayOptions
  readonly attempt?: Partial<AttemptOptions>
  readonly sampler?: ByteSampler
  readonly renderer?: Renderer
}

/** A gateway with one open attempt over a scripted sampler. */
export function bench(
  script: readonly Answer[] | ((index: number, prompt: Int32Array) => Answer),
  options: BenchOptions = {},
): Bench {
  const sampler = options.sampler ?? byteSampler(script)
  const record = recorded()
  const gateway = createGateway(options.gateway)
  const attempt = gateway.open({
    rollout: 'r1',
    policy: { sampler, renderer: options.renderer ?? byteRenderer(), sampling: {} },
    record,
    ...options.attempt,
  })
  const post = (route: string, body: object, init: RequestInit = {}) =>
    postTo(gateway, `${gateway.baseURL(attempt)}${route}`, attempt.key, body, init)
  return {
    gateway,
    attempt,
    sampler,
    record,
    post,
    async chat(messages, more = {}, init = {}) {
      const response = await post('/chat/completions', { model: 'policy', messages, ...more }, init)
      const body = (await response.json()) as ChatReply
      return { ...body, status: response.status, headers: response.headers }
    },
  }
}

export function postTo(
  gateway: Gateway,
  url: string,
  key: string | undefined,
  body: object,
  init: RequestInit = {},
): Promise<Response> {
  return gateway.fetch(url, {
    method: 'POST',
    ...init,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      'content-type': 'application/json',
      ...(init.headers as Record<string, string> | undefined),
    },
    body: JSON.stringify(body),
  })
}

/** The data of a stream's events, `[DONE]` as text. */
export async function events(response: Response): Promise<readonly unknown[]> {
  const all = await response.text()
  return all
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
    .map((data) => (data === '[DONE]' ? data : (JSON.parse(data) as unknown)))
}

export const user = (content: string) => ({ role: 'user', content })
export const system = (content: string) => ({ role: 'system', content })
export const toolResult = (id: string, content: string) => ({
  role: 'tool',
  tool_call_id: id,
  content,
})

/** Tools by name, as the chat dialect has them. */
export function chatTools(...names: readonly string[]): readonly object[] {
  return names.map((name) => ({ type: 'function', function: specOf(name) }))
}

export function specOf(name: string): ToolSpec {
  return { name, parameters: { type: 'object', properties: {} } }
}
