import { chunkLength, chunksLength, DataError, mergeChunks, type PromptChunk } from '@tiltyard/core'

/** A sequence as a learner takes it: each input position with the token that follows. */
export interface ShiftedTokens {
  readonly input: readonly PromptChunk[]
  /** 0 where the next position is an image. */
  readonly targets: Int32Array
}

/**
 * Input and targets of a sequence: all but the last position, and all but the first. `[1, 2, 3]` gives `[1, 2]` and `[2, 3]`.
 * Where the sequence is one run of tokens both are views of it, so nothing is copied.
 * @throws DataError when it is shorter than two positions, or ends with an image.
 */
export function shiftTokens(chunks: readonly PromptChunk[]): ShiftedTokens {
  const merged = mergeChunks(chunks)
  const length = chunksLength(merged)
  if (length < 2) throw new DataError(`a sequence of ${length} positions is too short to train`)
  const last = merged.at(-1)!
  if (last.type === 'image')
    throw new DataError('a sequence that ends with an image has no last target')
  const head: PromptChunk = { type: 'tokens', ids: last.ids.subarray(0, -1) }
  const input = head.ids.length === 0 ? merged.slice(0, -1) : [...merged.slice(0, -1), head]
  if (merged.length === 1) return { input, targets: last.ids.subarray(1) }
  const targets = new Int32Array(length - 1)
  let at = -1
  for (const chunk of merged) {
    if (chunk.type === 'tokens') {
      const ids = at === -1 ? chunk.ids.subarray(1) : chunk.ids
      targets.set(ids, Math.max(at, 0))
    }
    at += chunkLength(chunk)
  }
  return { input, targets }
}
