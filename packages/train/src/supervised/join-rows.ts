import { concatIds, tokenChunk, type PromptChunk, type WeightedTokens } from '@tiltyard/core'

/**
 * Rows of which a later one begins with all of an earlier one become that later one, trained where either is: a conversation whose
 * history stands as it was said is read once, not once for each reply. Rows `[1, 2]` with weights `[0, 1]` and `[1, 2, 3, 4]` with
 * `[0, 0, 0, 1]` become one with `[0, 1, 0, 1]`. Rows with images stay as they are.
 */
export function joinRows(rows: readonly WeightedTokens[]): readonly WeightedTokens[] {
  if (rows.length < 2) return rows
  const joined: Row[] = []
  for (const { chunks, weights } of rows) {
    const row = { chunks, weights, ids: idsOf(chunks) }
    const before = joined.at(-1)
    if (before !== undefined && beginsWith(row, before))
      joined[joined.length - 1] = merge(before, row)
    else joined.push(row)
  }
  return joined.map(({ chunks, weights }) => ({ chunks, weights }))
}

interface Row extends WeightedTokens {
  /** Undefined when there is an image among them. */
  readonly ids: Int32Array | undefined
}

function beginsWith({ ids: whole }: Row, { ids: start }: Row): boolean {
  if (whole === undefined || start === undefined || start.length > whole.length) return false
  for (let at = 0; at < start.length; at += 1) if (whole[at] !== start[at]) return false
  return true
}

function merge(start: Row, { ids, weights }: Row): Row {
  const both = weights.slice()
  for (let at = 0; at < start.weights.length; at += 1)
    both[at] = Math.max(start.weights[at]!, both[at]!)
  return { chunks: [tokenChunk(ids!)], weights: both, ids }
}

function idsOf(chunks: readonly PromptChunk[]): Int32Array | undefined {
  const ids = chunks.flatMap((chunk) => (chunk.type === 'tokens' ? [chunk.ids] : []))
  return ids.length === chunks.length ? concatIds(ids) : undefined
}
