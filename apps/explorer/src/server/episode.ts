import {
  textOf,
  type Content,
  type EpisodeEvent,
  type EpisodeRecord,
  type RecordedMessage,
  type Tokenizer,
} from '@tiltyard/core'

import type { EpisodeAnswer } from '../api/answers.ts'
import { episodeLineOf } from './lines.ts'
import { fittingTokenizer } from './tokens.ts'

export type RecordedCall = EpisodeEvent['calls'][number]

/** What was said: from the record, or from the journal of an episode that never ended. */
export function messagesOf({ episode, journal }: EpisodeRecord): readonly RecordedMessage[] {
  return episode?.messages ?? journal.flatMap(({ messages }) => messages)
}

export function callsOf({ episode, journal }: EpisodeRecord): readonly RecordedCall[] {
  return episode?.calls ?? journal.flatMap(({ calls }) => calls ?? [])
}

/** All of an episode but its texts and tokens, which are asked for by the page. */
export function showEpisode(
  record: EpisodeRecord,
  tokenizers: readonly Tokenizer[],
): EpisodeAnswer {
  const { summary, episode, score, training, failures, damage } = record
  const messages = messagesOf(record)
  const messageOfCall = new Map(
    messages.flatMap((message, index) =>
      message.role === 'tool' ? [[message.toolCallId, index] as const] : [],
    ),
  )
  const tokenizer = episode === undefined ? undefined : fittingTokenizer(episode, tokenizers)
  return {
    episode: episodeLineOf(summary),
    ...(damage === undefined ? {} : { damage }),
    ended: episode !== undefined,
    ...(episode === undefined ? {} : { seed: episode.seed }),
    tags: [...(episode?.tags ?? [])],
    tools: (episode?.tools ?? []).map(({ name, description, parameters }) => ({
      name,
      parameters: JSON.stringify(parameters, undefined, 2),
      ...(description === undefined ? {} : { description }),
    })),
    messages: messages.map((message) => ({
      role: message.role,
      chars: partsOf(message).reduce((sum, { text }) => sum + text.length, 0),
      ...(message.role === 'assistant' && message.reply !== undefined
        ? { reply: message.reply }
        : {}),
    })),
    replies: (episode?.replies ?? []).map(
      ({
        version,
        sequence,
        start,
        length,
        stop,
        trained,
        restart,
        malformed,
        agent,
        purpose,
        ms,
      }) => ({
        version,
        sequence,
        start,
        length,
        stop,
        trained,
        malformed: [...(malformed ?? [])],
        ms,
        ...(restart === undefined ? {} : { restart }),
        ...(agent === undefined ? {} : { agent }),
        ...(purpose === undefined ? {} : { purpose }),
      }),
    ),
    calls: callsOf(record).map(({ id, name, ms, error }) => {
      const message = messageOfCall.get(id)
      return {
        name,
        ms,
        ...(error === undefined ? {} : { error }),
        ...(message === undefined ? {} : { message }),
      }
    }),
    metrics: { ...score?.metrics },
    ...(training === undefined
      ? {}
      : {
          training: {
            step: training.step,
            ...(training.advantage === undefined ? {} : { advantage: training.advantage }),
            ...(training.untrained === undefined ? {} : { untrained: training.untrained }),
            data: training.data.map(({ sequence, length, trained }) => ({
              sequence,
              length,
              trained,
            })),
          },
        }),
    failures: failures.map(({ phase, error }) => ({ phase, error })),
    sequences: (episode?.sequences ?? []).map(({ ids }) => ids.length),
    ...(tokenizer === undefined ? {} : { tokenizer: tokenizer.name }),
  }
}

/** A text of a message under the name by which the page asks for all of it. */
export interface Part {
  readonly part: string
  readonly text: string
}

/** The texts of a message, in the order in which they are shown. */
export function partsOf(message: RecordedMessage): readonly Part[] {
  const content = { part: 'content', text: plainText(message.content) }
  if (message.role !== 'assistant') return [content]
  return [
    ...(message.reasoning === undefined ? [] : [{ part: 'reasoning', text: message.reasoning }]),
    content,
    ...(message.toolCalls ?? []).map((call, index) => ({
      part: `call:${index}`,
      text: 'arguments' in call ? JSON.stringify(call.arguments, undefined, 2) : call.rawArguments,
    })),
  ]
}

type RecordedContent = RecordedMessage['content']

function plainText(content: RecordedContent): string {
  // Recorded images have sizes in place of bytes; neither is text.
  return textOf(content as Content)
}

export function imagesOf(content: RecordedContent) {
  if (typeof content === 'string') return []
  return content.flatMap((part) => {
    if (part.type === 'text') return []
    const { format, width, height, bytes } = part
    return [{ format, width, height, bytes }]
  })
}
