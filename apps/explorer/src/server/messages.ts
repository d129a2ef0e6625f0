import { NotFoundError, type EpisodeRecord, type RecordedMessage } from '@tiltyard/core'

import type { Clip, FindAnswer, MessageBody } from '../api/answers.ts'
import { callsOf, imagesOf, messagesOf, partsOf, type RecordedCall } from './episode.ts'

/** Characters of a text that a list of messages holds; the page asks for the rest when a reader wants it. */
export const CLIP_CHARS = 8_000

export function listMessages(
  record: EpisodeRecord,
  { from, count }: { readonly from: number; readonly count: number },
): readonly MessageBody[] {
  const calls = new Map(callsOf(record).map((call) => [call.id, call]))
  return messagesOf(record)
    .slice(from, from + count)
    .map((message, offset) => bodyOf(message, from + offset, calls))
}

function bodyOf(
  message: RecordedMessage,
  index: number,
  calls: ReadonlyMap<string, RecordedCall>,
): MessageBody {
  const texts = new Map(partsOf(message).map(({ part, text }) => [part, text]))
  const clip = (part: string) => clipped(texts.get(part) ?? '')
  const body = {
    index,
    role: message.role,
    content: clip('content'),
    images: imagesOf(message.content),
  }
  if (message.role === 'tool') {
    const call = calls.get(message.toolCallId)
    const name = message.name ?? call?.name
    return {
      ...body,
      calls: [],
      answers: {
        ...(name === undefined ? {} : { name }),
        ...(call === undefined ? {} : { ms: call.ms }),
        ...(call?.error === undefined ? {} : { error: call.error }),
        ...(call === undefined || call.result === texts.get('content')
          ? {}
          : { result: clipped(call.result) }),
      },
    }
  }
  if (message.role !== 'assistant') return { ...body, calls: [] }
  return {
    ...body,
    calls: (message.toolCalls ?? []).map((call, number) => ({
      id: call.id,
      name: call.name,
      arguments: clip(`call:${number}`),
      ...('error' in call ? { error: call.error } : {}),
    })),
    ...(message.reasoning === undefined ? {} : { reasoning: clip('reasoning') }),
    ...(message.reply === undefined ? {} : { reply: message.reply }),
  }
}

/** A piece of a text that a list only began. @throws NotFoundError */
export function readText(
  record: EpisodeRecord,
  wanted: {
    readonly message: number
    readonly part: string
    readonly from: number
    readonly chars: number
  },
): { readonly text: string; readonly from: number; readonly chars: number } {
  const { message: index, part, from, chars } = wanted
  const message = messagesOf(record)[index]
  if (message === undefined) throw new NotFoundError(`the episode has no message ${index}`)
  const text =
    part === 'result' && message.role === 'tool'
      ? callsOf(record).find(({ id }) => id === message.toolCallId)?.result
      : partsOf(message).find((candidate) => candidate.part === part)?.text
  if (text === undefined) throw new NotFoundError(`message ${index} has no ${part}`)
  return { text: text.slice(from, wholeCharacters(text, from + chars)), from, chars: text.length }
}

/** Characters around a hit that an excerpt holds. */
const EXCERPT_CHARS = 60

/** Where a text occurs in the conversation, case apart. */
export function findText(record: EpisodeRecord, wanted: string, most: number): FindAnswer {
  const pattern = new RegExp(wanted.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`), 'giu')
  const hits: FindAnswer['hits'] = []
  for (const [message, body] of messagesOf(record).entries()) {
    for (const { part, text } of partsOf(body)) {
      for (const { index: at, 0: found } of text.matchAll(pattern)) {
        if (hits.length === most) return { hits, more: true }
        const excerpt = text.slice(
          wholeCharacters(text, Math.max(0, at - EXCERPT_CHARS)),
          wholeCharacters(text, at + found.length + EXCERPT_CHARS),
        )
        hits.push({ message, part, at, excerpt })
      }
    }
  }
  return { hits, more: false }
}

function clipped(text: string): Clip {
  return { text: text.slice(0, wholeCharacters(text, CLIP_CHARS)), chars: text.length }
}

/** The place, moved before the second half of a character beyond 16 bits. */
function wholeCharacters(text: string, at: number): number {
  const code = text.charCodeAt(at)
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at
}
