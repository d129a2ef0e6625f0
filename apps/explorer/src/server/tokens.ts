import {
  NotFoundError,
  type EpisodeEvent,
  type EpisodeRecord,
  type Tokenizer,
} from '@tiltyard/core'

import type { TokensAnswer } from '../api/answers.ts'

/** Replies that are tried before a tokenizer is believed. */
const TRIED_REPLIES = 3

/**
 * The record holds ids and says nothing of their vocabulary. A tokenizer fits when the ids of the replies spell what their
 * messages say.
 */
export function fittingTokenizer(
  episode: EpisodeEvent,
  tokenizers: readonly Tokenizer[],
): Tokenizer | undefined {
  const samples = episode.messages.flatMap((message) => {
    if (message.role !== 'assistant' || message.reply === undefined) return []
    const { reply: number, content, reasoning = '', toolCalls = [] } = message
    const reply = episode.replies[number]
    const ids = reply && episode.sequences[reply.sequence]?.ids
    const texts = [content, reasoning, ...toolCalls.map(({ name }) => name)].map((text) =>
      text.trim(),
    )
    return ids === undefined
      ? []
      : [{ ids: ids.subarray(reply!.start, reply!.start + reply!.length), texts }]
  })
  const tried = samples
    .filter(({ texts }) => texts.some((text) => text !== ''))
    .slice(0, TRIED_REPLIES)
  if (tried.length === 0) return undefined
  return tokenizers.find((tokenizer) =>
    tried.every(({ ids, texts }) => {
      if (ids.some((id) => id >= tokenizer.vocabularySize)) return false
      const spelled = tokenizer.decode(ids)
      return texts.every((text) => spelled.includes(text))
    }),
  )
}

/** A piece of a token sequence with what is known of each id. @throws NotFoundError */
export function listTokens(
  { episode, training }: EpisodeRecord,
  wanted: { readonly sequence: number; readonly from: number; readonly count: number },
  tokenizers: readonly Tokenizer[],
): TokensAnswer {
  const sequence = episode?.sequences[wanted.sequence]
  if (episode === undefined || sequence === undefined)
    throw new NotFoundError(`the episode has no token sequence ${wanted.sequence}`)
  const { ids, logprobs, mask } = sequence
  const from = Math.min(wanted.from, ids.length)
  const to = Math.min(from + wanted.count, ids.length)
  const owners = ownersOf(episode, wanted.sequence, ids.length).subarray(from, to)
  const tokenizer = fittingTokenizer(episode, tokenizers)
  const datum = training?.data.find((candidate) => candidate.sequence === wanted.sequence)
  const advantage = training?.untrained === undefined ? training?.advantage : undefined
  const advantageAt = (at: number): number => {
    if (mask[at] === 0 || datum === undefined) return 0
    return datum.advantages === undefined ? (advantage ?? 0) : (datum.advantages[at] ?? 0)
  }
  const places = Array.from({ length: to - from }, (_, offset) => from + offset)
  return {
    from,
    total: ids.length,
    ids: places.map((at) => ids[at]!),
    logprobs: places.map((at) => (owners[at - from] === -1 ? null : logprobs[at]!)),
    mask: places.map((at) => mask[at]!),
    replies: Array.from(owners),
    ...(tokenizer === undefined
      ? {}
      : { texts: places.map((at) => tokenText(tokenizer, ids[at]!)) }),
    ...(training === undefined || training.untrained !== undefined
      ? {}
      : { advantages: places.map(advantageAt) }),
  }
}

/** Which reply each position belongs to; −1 for what the model was shown. */
function ownersOf({ replies }: EpisodeEvent, sequence: number, length: number): Int32Array {
  const owners = new Int32Array(length).fill(-1)
  for (const [number, reply] of replies.entries())
    if (reply.sequence === sequence) owners.fill(number, reply.start, reply.start + reply.length)
  return owners
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes that are no whole character are shown one by one: `\xE6\x97`. */
function tokenText(tokenizer: Tokenizer, id: number): string {
  if (id < 0) return '[image]'
  const bytes = tokenizer.bytes(id)
  try {
    return strict.decode(bytes)
  } catch {
    return Array.from(
      bytes,
      (byte) => `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join('')
  }
}
