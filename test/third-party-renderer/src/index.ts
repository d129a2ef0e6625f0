import { createHash } from 'node:crypto'

import {
  chunksLength,
  createPrompt,
  mergeChunks,
  type Conversation,
  type JsonValue,
  type Message,
  type PromptChunk,
  type Renderer,
  type Tokenizer,
  type TrainOn,
  type WeightedTokens,
} from '@tiltyard/core'
import {
  continueFrom,
  encodeSegments,
  findMarkers,
  templateWriter,
  type Segment,
} from '@tiltyard/core/rendering'

import { llamaStream } from './parse.ts'
import { head, messageBlock, replyHeader, replyText, type LlamaLayout } from './template.ts'

export interface LlamaRendererOptions {
  readonly tokenizer: Tokenizer
  /** Of the preamble. */
  readonly date: string
  /** Default true. */
  readonly toolsInUserMessage?: boolean
}

/**
 * The renderer for a vector file's case, by the arguments of the official template: for `checkVectors`, and for
 * `tiltyard doctor renderer --renderer ./src/index.ts#fromTemplate`.
 */
export function fromTemplate(request: {
  readonly options: Readonly<Record<string, JsonValue>>
  readonly tokenizer: Tokenizer
}): Renderer {
  const { date_string: date, tools_in_user_message: inUser } = request.options
  return llamaRenderer({
    tokenizer: request.tokenizer,
    date: typeof date === 'string' ? date : '26 Jul 2024',
    toolsInUserMessage: inUser !== false,
  })
}

/** Llama 3.1's chat layout, with custom tools. */
export function llamaRenderer(options: LlamaRendererOptions): Renderer {
  const { tokenizer, date, toolsInUserMessage = true } = options
  const markers = findMarkers(tokenizer, { stop: '<|eot_id|>', eos: '<|end_of_text|>' })
  const layout: LlamaLayout = { write: templateWriter(tokenizer), date, toolsInUserMessage }
  const encode = (segments: readonly Segment[]) => encodeSegments(tokenizer, segments)

  const transcript = ({ messages, tools = [] }: Conversation) => {
    const { segments, rest } = head(messages, tools, layout)
    return [...segments, ...rest.flatMap((message) => messageBlock(message, layout))]
  }

  /** The history only grows, so one row holds all trained replies. */
  const supervised = (conversation: Conversation, on: TrainOn): WeightedTokens => {
    const { messages } = conversation
    const trained = trainedReplies(messages, on)
    const parts: { readonly chunks: readonly PromptChunk[]; readonly weight: number }[] = []
    let from: number | undefined
    for (const index of trained) {
      const before = { ...conversation, messages: messages.slice(0, index) }
      const context =
        from === undefined
          ? transcript(before)
          : messages.slice(from + 1, index).flatMap((message) => messageBlock(message, layout))
      parts.push({ chunks: encode([...context, ...replyHeader(layout)]), weight: 0 })
      parts.push({ chunks: encode([replyText(messages[index] as never), markers.stop]), weight: 1 })
      from = index
    }
    if (trained.length === 0) parts.push({ chunks: encode(transcript(conversation)), weight: 0 })
    return {
      chunks: mergeChunks(parts.flatMap(({ chunks }) => chunks)),
      weights: Float32Array.from(
        parts.flatMap(({ chunks, weight }) =>
          Array.from({ length: chunksLength(chunks) }, () => weight),
        ),
      ),
    }
  }

  return {
    specVersion: 'renderer/1',
    name: 'llama3',
    fingerprint: createHash('sha256')
      .update(JSON.stringify(['llama3', 1, date, toolsInUserMessage, tokenizer.fingerprint]))
      .digest('hex'),
    history: { extendsToolLoop: true, extendsUserTurn: true, breaks: '' },
    capabilities: { tools: true, images: false, reasoning: false },
    stop: { tokens: [markers.stop.id, markers.eos.id], strings: [] },
    prompt: (conversation) =>
      createPrompt(encode([...transcript(conversation), ...replyHeader(layout)])),
    transcript: (conversation) => createPrompt(encode(transcript(conversation))),
    extend(prompt, reply, next) {
      const blocks = next.messages.flatMap((message) => messageBlock(message, layout))
      return continueFrom(prompt, reply, markers.stop, encode([...blocks, ...replyHeader(layout)]))
    },
    parse(ids, context) {
      const stream = llamaStream(tokenizer, markers, context)
      stream.push(ids)
      return stream.end(context.stop).reply
    },
    stream: (context) => llamaStream(tokenizer, markers, context),
    supervised: (conversation, on) => [supervised(conversation, on)],
  }
}

function trainedReplies(messages: readonly Message[], on: TrainOn): readonly number[] {
  const replies = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
  if (on === 'all_assistant_messages') return replies
  if (on === 'last_assistant_message') {
    return messages.at(-1)?.role === 'assistant' ? replies.slice(-1) : []
  }
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  return replies.filter((index) => index > lastUser)
}
