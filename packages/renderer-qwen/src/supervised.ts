import {
  chunksLength,
  ConfigError,
  mergeChunks,
  unknownName,
  type Conversation,
  type Message,
  type PromptChunk,
  type TrainOn,
  type WeightedTokens,
} from '@tiltyard/core'
import type { Marker, Segment } from '@tiltyard/core/rendering'

import { completionBody } from './template/assistant.ts'
import { conversationSegments, messageBlocks, replyHeader } from './template/conversation.ts'
import { spoken } from './template/reasoning.ts'
import type { Scene } from './template/scene.ts'

type Encode = (segments: readonly Segment[]) => readonly PromptChunk[]

/**
 * Examples for supervised training: the prompt before a reply, then what the model would sample for it, encoded apart as in
 * sampling. One row where the template keeps its history, else one per trained reply.
 */
export function supervisedExamples(
  conversation: Conversation,
  on: TrainOn,
  scene: Scene,
  encode: Encode,
  end: Marker,
): readonly WeightedTokens[] {
  const { messages } = conversation
  const trained = trainedReplies(messages, on)
  for (const index of trained) checkReply(messages, index, scene)
  if (trained.length === 0) {
    const segments = conversationSegments(conversation, scene)
    return [weigh([{ chunks: encode(segments.slice(0, -1)), weight: 0 }])]
  }

  const prompt = (index: number) => {
    const before = { ...conversation, messages: messages.slice(0, index) }
    return encode([...conversationSegments(before, scene), ...replyHeader(scene)])
  }
  const completion = (index: number) => {
    const message = messages[index]!
    if (message.role !== 'assistant') throw new Error(`message ${index} is no reply`)
    return encode([...completionBody(message, scene), end])
  }
  if (!keepsHistory(scene)) {
    return trained.map((index) =>
      weigh([
        { chunks: prompt(index), weight: 0 },
        { chunks: completion(index), weight: 1 },
      ]),
    )
  }

  const parts = trained.flatMap((index, place): readonly WeightedPart[] => {
    const before = trained[place - 1]
    const context =
      before === undefined ? prompt(index) : encode(between(messages, before, index, scene))
    return [
      { chunks: context, weight: 0 },
      { chunks: completion(index), weight: 1 },
    ]
  })
  return [weigh(parts)]
}

/** Whether an earlier reply stands in the history as it was sampled, whatever follows. */
export function keepsHistory({ layout, preserveThinking }: Scene): boolean {
  return layout.think === 'none' || preserveThinking
}

/** What stands between two trained replies. */
function between(
  messages: readonly Message[],
  from: number,
  to: number,
  scene: Scene,
): readonly Segment[] {
  const images = messages
    .slice(0, from)
    .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
    .filter(({ type }) => type === 'image').length
  const blocks = messageBlocks(messages.slice(0, to), from + 1, -1, scene, { images })
  return ['\n', ...blocks, ...replyHeader(scene)]
}

const trainOn: ReadonlySet<TrainOn> = new Set([
  'all_assistant_messages',
  'last_assistant_message',
  'last_assistant_turn',
])

function trainedReplies(messages: readonly Message[], on: TrainOn): readonly number[] {
  if (!trainOn.has(on)) {
    throw new ConfigError('supervised', [
      { at: 'on', message: unknownName('mode', on, [...trainOn]) },
    ])
  }
  const replies = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
  if (on === 'all_assistant_messages') return replies
  if (on === 'last_assistant_message') {
    return messages.at(-1)?.role === 'assistant' ? replies.slice(-1) : []
  }
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  return replies.filter((index) => index > lastUser)
}

function checkReply(messages: readonly Message[], index: number, scene: Scene): void {
  const message = messages[index]!
  if (message.role !== 'assistant' || scene.thinking || scene.layout.thinking === 'never') return
  if (spoken(message, scene).reasoning === '') return
  throw new ConfigError('conversation', [
    {
      at: `messages.${index}`,
      message:
        'the reply reasons, but the prompt says not to; train it with thinking on, or take the reasoning out',
    },
  ])
}

interface WeightedPart {
  readonly chunks: readonly PromptChunk[]
  readonly weight: 0 | 1
}

function weigh(parts: readonly WeightedPart[]): WeightedTokens {
  const chunks = mergeChunks(parts.flatMap((part) => part.chunks))
  const weights = new Float32Array(chunksLength(chunks))
  let at = 0
  for (const part of parts) {
    const end = at + chunksLength(part.chunks)
    weights.fill(part.weight, at, end)
    at = end
  }
  return { chunks, weights }
}
