import assert from 'node:assert/strict'

import {
  concatIds,
  TiltyardError,
  type AssistantMessage,
  type Conversation,
  type Message,
  type PromptChunk,
  type Renderer,
  type RenderedPrompt,
  type Tokenizer,
  type ToolSpec,
} from '@tiltyard/core'

/** What a renderer may lack beside what its capabilities say. Each is declared with the reason; an undeclared lack fails. */
export type RendererFeature =
  /** Several calls in one reply. */
  | 'parallelCalls'
  /** Visible text before a call. */
  | 'textBesideCalls'

export interface RendererCasesOptions {
  /** A renderer over a tokenizer. The cases pass one that counts what is encoded. */
  readonly create: (tokenizer: Tokenizer) => Renderer
  /** The model's tokenizer, or `byteTokenizer` with the markers that the layout writes. */
  readonly tokenizer: Tokenizer
  readonly lacks?: Readonly<Partial<Record<RendererFeature, string>>>
}

/** A renderer with its tokenizer: what each case gets. */
export interface Subject {
  readonly renderer: Renderer
  readonly tokenizer: Tokenizer
}

export const tools: readonly ToolSpec[] = [
  {
    name: 'find_order',
    description: 'Finds an order.',
    parameters: {
      type: 'object',
      properties: {
        zip: { type: 'string', description: 'Kept as text' },
        note: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        limit: { $ref: '#/$defs/Limit' },
        with_items: { type: 'boolean' },
        ratio: { type: 'number' },
        tags: { type: 'array', items: { type: 'string' } },
        range: { type: 'object', properties: { from: { type: 'string' } } },
      },
      required: ['zip'],
      $defs: { Limit: { type: 'integer' } },
    },
  },
  {
    name: 'list_rooms',
    description: 'Lists the rooms.',
    parameters: { type: 'object', properties: {} },
  },
]

const question: readonly Message[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Where is my order? It is for 07040.' },
]

/** A conversation that begins with the question, with tools where the renderer has them. */
export function conversationOf({ renderer }: Subject, ...more: readonly Message[]): Conversation {
  return { messages: [...question, ...more], ...(renderer.capabilities.tools ? { tools } : {}) }
}

export function assistant(
  content: string,
  extra: Partial<AssistantMessage> = {},
): AssistantMessage {
  return { role: 'assistant', content, ...extra }
}

/** A call of `find_order`. */
export function callOf(args: Readonly<Record<string, unknown>>, index = 0) {
  return { id: `call_${index}`, name: 'find_order', arguments: args as Record<string, never> }
}

/** Whether replies may reason; a renderer with reasoning switched off refuses to train any. */
export function reasons(subject: Subject): boolean {
  if (!subject.renderer.capabilities.reasoning) return false
  try {
    replyIds(subject, assistant('Yes.', { reasoning: 'It is so.' }))
    return true
  } catch (error) {
    if (TiltyardError.is(error, 'CONFIG')) return false
    throw error
  }
}

/** The ids that the model would sample for a message after `before`: what supervised training trains of it. */
export function replyIds(
  subject: Subject,
  message: AssistantMessage,
  before: readonly Message[] = [],
): Int32Array {
  const conversation = conversationOf(subject, ...before, message)
  const rows = subject.renderer.supervised(conversation, 'last_assistant_message')
  assert.equal(rows.length, 1, 'the last reply gives one row')
  const { chunks, weights } = rows[0]!
  return wholeIds(chunks).filter((_, index) => weights[index] === 1)
}

/** Ids of chunks, −1 at the positions of images. */
export function wholeIds(chunks: readonly PromptChunk[]): Int32Array {
  return concatIds(
    chunks.map((chunk) =>
      chunk.type === 'tokens' ? chunk.ids : new Int32Array(chunk.tokens).fill(-1),
    ),
  )
}

export function promptText(prompt: RenderedPrompt, tokenizer: Tokenizer): string {
  return tokenizer.decode(wholeIds(prompt.chunks()))
}

/** A tokenizer that counts characters encoded and ids decoded. */
export function countingTokenizer(tokenizer: Tokenizer): {
  readonly tokenizer: Tokenizer
  readonly work: () => number
} {
  let work = 0
  return {
    work: () => work,
    tokenizer: {
      ...tokenizer,
      encode(text) {
        work += text.length
        return tokenizer.encode(text)
      },
      decode(ids) {
        work += ids.length
        return tokenizer.decode(ids)
      },
    },
  }
}
