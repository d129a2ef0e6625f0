import type { SystemMessage, UserMessage } from '@tiltyard/core'

/** What a chat is told: instructions, and a conversation in which it is the assistant. Texts only. */
export type ChatMessage =
  | SystemMessage
  | UserMessage
  | { readonly role: 'assistant'; readonly content: string }

export interface ChatOptions {
  readonly signal: AbortSignal
  /** Of this reply (uint32), where the model takes one. */
  readonly seed?: number
}

/** A model beside the policy: it plays a user, or judges what was done. Safe to call concurrently. */
export interface Chat {
  /** Which model it is; part of what a record says of its work. */
  readonly name: string
  /** Text of the next reply. @throws when there is none: an error of the service, never of what is asked. */
  reply(messages: readonly ChatMessage[], options: ChatOptions): Promise<string>
}
