import {
  concatIds,
  DataError,
  mergeChunks,
  type PlayedReply,
  type PolicyVersion,
  type PromptChunk,
  type RenderedPrompt,
} from '@tiltyard/core'

/** The sampled ids of one reply in a sequence. */
export interface SampledSpan {
  /** Index of the reply in the list that was given. */
  readonly reply: number
  /** Position of the first id. */
  readonly start: number
  readonly length: number
  /** One per id, in nats, as sampled. */
  readonly logprobs: Float32Array
  readonly version: PolicyVersion
  /** False: context only. */
  readonly trained: boolean
}

/** Tokens that only ever grew: prompts, replies and what was added after them, as the policy saw them. */
export interface TokenSequence {
  /** Positions, those of images included. */
  readonly length: number
  /** The whole, adjacent token chunks joined. */
  readonly chunks: readonly PromptChunk[]
  /** In order of position. Everything outside them was not sampled. */
  readonly spans: readonly SampledSpan[]
  /** Why it does not continue a sequence before it; absent for a first one, and for the first of another agent. */
  readonly split?: string
}

/**
 * Joins replies into as few sequences as their tokens allow: a reply goes on where its prompt starts with all of a sequence.
 * That is found by the handles of the prompts, whose new ids are compared with the sampled ones, or else by comparing all ids;
 * never by counting. Each sampled id lies in exactly one span. Where prompts extend each other the work grows with the new tokens.
 * @throws DataError when a reply has not one log-probability per id.
 */
export function sequencesOf(replies: readonly PlayedReply[]): readonly TokenSequence[] {
  const growing: Growing[] = []
  const agents = new Set<string | undefined>()
  for (const [index, reply] of replies.entries()) {
    const { ids, logprobs } = reply.sample
    if (ids.length !== logprobs.length) {
      throw new DataError(
        `reply ${index} has ${ids.length} ids and ${logprobs.length} log-probabilities`,
      )
    }
    const found = continued(growing, reply.prompt)
    if (found === undefined) {
      const isNew = !agents.has(reply.agent)
      const split = isNew ? undefined : (reply.restart ?? UNEXPLAINED_SPLIT)
      growing.push(begin(reply, index, split))
    } else {
      append(found.sequence, found.added, reply, index)
    }
    agents.add(reply.agent)
  }
  return growing.map(finish)
}

/** The cause of a split that nothing else explains. */
export const UNEXPLAINED_SPLIT = 'the prompt does not start with the tokens before it'

interface Growing {
  readonly parts: PromptChunk[]
  readonly spans: SampledSpan[]
  readonly split: string | undefined
  length: number
  last: PlayedReply
}

function begin(reply: PlayedReply, index: number, split: string | undefined): Growing {
  const sequence: Growing = { parts: [], spans: [], split, length: 0, last: reply }
  append(sequence, reply.prompt.chunks(), reply, index)
  return sequence
}

function append(
  sequence: Growing,
  added: readonly PromptChunk[],
  reply: PlayedReply,
  index: number,
): void {
  const { ids, logprobs } = reply.sample
  sequence.parts.push(...added, { type: 'tokens', ids })
  sequence.spans.push({
    reply: index,
    start: reply.prompt.length,
    length: ids.length,
    logprobs,
    version: reply.version,
    trained: reply.trained,
  })
  sequence.length = reply.prompt.length + ids.length
  sequence.last = reply
}

function finish({ parts, spans, split, length }: Growing): TokenSequence {
  let chunks: readonly PromptChunk[] | undefined
  return {
    length,
    spans,
    ...(split === undefined ? {} : { split }),
    // Joined when they are wanted: to know the spans costs nothing of it.
    get chunks() {
      chunks ??= mergeChunks(parts)
      return chunks
    },
  }
}

/** The longest sequence that the prompt starts with, the newest of equals, and what the prompt adds to it. */
function continued(
  growing: readonly Growing[],
  prompt: RenderedPrompt,
): { readonly sequence: Growing; readonly added: readonly PromptChunk[] } | undefined {
  const [first] = growing
  if (growing.length === 1 && first !== undefined) {
    const added = addedByHandle(first.last, prompt)
    if (added !== undefined) return { sequence: first, added }
  }
  const fitting = growing
    .filter(({ length }) => length <= prompt.length)
    .toReversed()
    .toSorted((a, b) => b.length - a.length)
  for (const sequence of fitting) {
    const added = addedByHandle(sequence.last, prompt)
    if (added !== undefined) return { sequence, added }
  }
  if (fitting.length === 0) return undefined
  const whole = prompt.chunks()
  for (const sequence of fitting) {
    const added = chunksAfter(sequence.parts, whole)
    if (added !== undefined) return { sequence, added }
  }
  return undefined
}

/** What a descendant of the reply's prompt has after the sampled ids; undefined when it is none, or has other ids there. */
function addedByHandle(
  { prompt: before, sample }: PlayedReply,
  prompt: RenderedPrompt,
): readonly PromptChunk[] | undefined {
  // A renderer that hands the sampled ids on as they are needs no comparison.
  const { added: own } = prompt
  const isPassedOn = own[0]?.type === 'tokens' && own[0].ids === sample.ids
  if (prompt.parent === before && isPassedOn) return own.slice(1)
  const handles: RenderedPrompt[] = []
  for (let handle: RenderedPrompt | undefined = prompt; handle !== before; handle = handle.parent) {
    if (handle === undefined || handle.length < before.length) return undefined
    handles.push(handle)
  }
  const added = handles.toReversed().flatMap((handle) => handle.added)
  return chunksAfter([{ type: 'tokens', ids: sample.ids }], added)
}

/** The chunks of `whole` behind `start`, or undefined when it does not start so. */
function chunksAfter(
  start: readonly PromptChunk[],
  whole: readonly PromptChunk[],
): readonly PromptChunk[] | undefined {
  const rest = [...whole]
  for (const chunk of start) {
    if (chunk.type === 'image') {
      const other = rest.shift()
      if (other === undefined || !isSameImage(chunk, other)) return undefined
      continue
    }
    let wanted = chunk.ids
    while (wanted.length > 0) {
      const other = rest.shift()
      if (other?.type !== 'tokens') return undefined
      const count = Math.min(wanted.length, other.ids.length)
      if (!isSame(wanted, other.ids, count)) return undefined
      if (count < other.ids.length) rest.unshift({ type: 'tokens', ids: other.ids.subarray(count) })
      wanted = wanted.subarray(count)
    }
  }
  return rest
}

function isSame(left: ArrayLike<number>, right: ArrayLike<number>, count: number): boolean {
  for (let index = 0; index < count; index += 1) if (left[index] !== right[index]) return false
  return true
}

function isSameImage(left: PromptChunk, right: PromptChunk): boolean {
  if (left.type !== 'image' || right.type !== 'image') return false
  if (left.format !== right.format || left.tokens !== right.tokens) return false
  if (left.data === right.data) return true
  return left.data.length === right.data.length && isSame(left.data, right.data, left.data.length)
}

/** Ids of a sequence, −1 at the positions of images. */
export function sequenceIds({ chunks }: TokenSequence): Int32Array {
  return concatIds(
    chunks.map((chunk) =>
      chunk.type === 'tokens' ? chunk.ids : new Int32Array(chunk.tokens).fill(-1),
    ),
  )
}

/** How often each cause split an episode's tokens. */
export function countSplits(sequences: readonly TokenSequence[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { split } of sequences)
    if (split !== undefined) counts.set(split, (counts.get(split) ?? 0) + 1)
  return counts
}
