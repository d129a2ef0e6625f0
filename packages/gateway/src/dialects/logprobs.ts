import { concatIds, type RenderedPrompt, type Tokenizer } from '@tiltyard/core'

import type { Choice } from '../calls/result.ts'

interface TokenText {
  readonly token: string
  /** UTF-8; a token may hold a part of a character. Null when there is no tokenizer to ask. */
  readonly bytes: readonly number[] | null
}

/** A token as text; without a tokenizer by its number, in the form that vLLM uses. */
function tokenText(id: number, tokenizer: Tokenizer | undefined): TokenText {
  if (tokenizer === undefined) return { token: `token_id:${id}`, bytes: null }
  return { token: tokenizer.decode([id]), bytes: [...tokenizer.bytes(id)] }
}

interface TokenEntry extends TokenText {
  readonly logprob: number
}

/** One entry per sampled token, the stop token among them. */
export function logprobEntries(
  { sample, alternatives }: Choice,
  tokenizer: Tokenizer | undefined,
): readonly (TokenEntry & { readonly top_logprobs: readonly TokenEntry[] })[] {
  return Array.from(sample.ids, (id, at) => ({
    ...tokenText(id, tokenizer),
    logprob: sample.logprobs[at]!,
    top_logprobs: (alternatives?.[at] ?? []).map((other) => ({
      ...tokenText(other.id, tokenizer),
      logprob: other.logprob,
    })),
  }))
}

/** Ids of a prompt; −1 at the positions of images. */
export function promptTokenIds(prompt: RenderedPrompt): readonly number[] {
  const parts = prompt
    .chunks()
    .map((chunk) => (chunk.type === 'tokens' ? chunk.ids : new Int32Array(chunk.tokens).fill(-1)))
  return Array.from(concatIds(parts))
}
