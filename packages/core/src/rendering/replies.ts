import type { Termination, Reply } from '../renderer.ts'
import {
  createPrompt,
  mergeChunks,
  tokenChunk,
  type PromptChunk,
  type RenderedPrompt,
} from '../tokens.ts'
import type { Marker } from './segments.ts'

/** Sampled ids up to the first that ends a reply. */
export interface SplitReply {
  readonly ids: Int32Array
  readonly termination: Termination
  /** The ending id and whatever stands after it. */
  readonly rest: Int32Array
}

/** Cuts sampled ids at the first stop or end-of-text marker. */
export function splitReply(
  ids: Int32Array,
  { stop, eos }: { readonly stop: Marker; readonly eos?: Marker },
): SplitReply {
  const end = ids.findIndex((id) => id === stop.id || id === eos?.id)
  if (end === -1) return { ids, termination: 'length', rest: ids.subarray(ids.length) }
  return {
    ids: ids.subarray(0, end),
    termination: ids[end] === stop.id ? 'stop' : 'eos',
    rest: ids.subarray(end),
  }
}

/**
 * A prompt that goes on from sampled ids: these stand as they were sampled, then comes what the environment adds. A reply that
 * doesn't end with its stop marker (it was cut, or ended otherwise) gets one.
 */
export function continueFrom(
  prompt: RenderedPrompt,
  reply: Reply,
  stop: Marker,
  added: readonly PromptChunk[],
): RenderedPrompt {
  const end = reply.ids.at(-1) === stop.id ? [] : [tokenChunk([stop.id])]
  return createPrompt(mergeChunks([tokenChunk(reply.ids), ...end, ...added]), prompt)
}
