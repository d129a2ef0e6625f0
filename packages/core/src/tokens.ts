import { DataError } from './errors.ts'

/** A run of token ids. */
export interface TokenChunk {
  readonly type: 'tokens'
  readonly ids: Int32Array
}

/** An image in a prompt. It stands for `tokens` positions that have no ids. */
export interface ImageChunk {
  readonly type: 'image'
  readonly format: 'png' | 'jpeg'
  readonly data: Uint8Array
  readonly tokens: number
}

export type PromptChunk = TokenChunk | ImageChunk

/**
 * An immutable prompt: a parent and what was added to it. Extending costs what is added; caches and transports can follow
 * the delta; `chunks()` gives the whole where a wire needs it. Two handles with the same parent share all before them.
 */
export interface RenderedPrompt {
  /** Positions, those of images included. */
  readonly length: number
  readonly parent: RenderedPrompt | undefined
  /** What this handle adds to its parent, adjacent token chunks merged. */
  readonly added: readonly PromptChunk[]
  /** The whole prompt with adjacent token chunks merged. Work grows with the length; not for every turn. */
  chunks(): readonly PromptChunk[]
}

export function tokenChunk(ids: Int32Array | readonly number[]): TokenChunk {
  return { type: 'tokens', ids: ids instanceof Int32Array ? ids : Int32Array.from(ids) }
}

export function chunkLength(chunk: PromptChunk): number {
  return chunk.type === 'tokens' ? chunk.ids.length : chunk.tokens
}

export function chunksLength(chunks: readonly PromptChunk[]): number {
  return chunks.reduce((sum, chunk) => sum + chunkLength(chunk), 0)
}

/** A prompt that adds `added` to `parent` (or begins with it). Adjacent token chunks are merged, empty ones left out. */
export function createPrompt(
  added: readonly PromptChunk[],
  parent?: RenderedPrompt,
): RenderedPrompt {
  // There is a prompt for each reply of a run: it holds one array where it can, and one function serves all.
  const merged = mergeChunks(added)
  return {
    length: (parent?.length ?? 0) + chunksLength(merged),
    parent,
    added: merged,
    chunks: wholeOf,
  }
}

function wholeOf(this: RenderedPrompt): readonly PromptChunk[] {
  const parts: PromptChunk[] = []
  for (const handle of lineage(this)) parts.push(...handle.added)
  return mergeChunks(parts)
}

/** A prompt of plain ids. */
export function tokenPrompt(ids: Int32Array | readonly number[]): RenderedPrompt {
  return createPrompt([tokenChunk(ids)])
}

/** The handles from the root to `prompt`. */
export function lineage(prompt: RenderedPrompt): readonly RenderedPrompt[] {
  const handles: RenderedPrompt[] = []
  for (
    let handle: RenderedPrompt | undefined = prompt;
    handle !== undefined;
    handle = handle.parent
  )
    handles.push(handle)
  return handles.toReversed()
}

/** Joins neighbouring token chunks, so that equal prompts have equal chunks. */
export function mergeChunks(chunks: readonly PromptChunk[]): readonly PromptChunk[] {
  const merged: PromptChunk[] = []
  let run: Int32Array[] = []
  const close = () => {
    if (run.length > 0) merged.push({ type: 'tokens', ids: concatIds(run) })
    run = []
  }
  for (const chunk of chunks) {
    if (chunk.type === 'tokens') {
      if (chunk.ids.length > 0) run.push(chunk.ids)
    } else {
      close()
      merged.push(chunk)
    }
  }
  close()
  return merged
}

export function concatIds(parts: readonly Int32Array[]): Int32Array {
  if (parts.length === 1) return parts[0]!
  const whole = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/**
 * The ids of a prompt of tokens only.
 * @throws DataError when the prompt holds an image.
 */
export function promptIds(prompt: RenderedPrompt): Int32Array {
  const chunks = prompt.chunks()
  if (chunks.some(({ type }) => type === 'image')) {
    throw new DataError(
      'the prompt holds an image, which has no token ids; use a backend that takes images',
    )
  }
  return concatIds(chunks.map((chunk) => (chunk as TokenChunk).ids))
}
