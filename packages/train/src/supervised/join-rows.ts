import { chunksLength, concatIds, tokenChunk, type WeightedTokens } from '@tiltyard/core'

/**
 * Rows of which a later one begins with all of an earlier one become that later one, trained where either is: a conversation whose
 * history stands as it was said is read once, not once for each reply. Rows `[1, 2]` with weights `[0, 1]` and `[1, 2, 3, 4]` with
 * `[0, 0, 0, 1]` become one with `[0, 1, 0, 1]`. Rows with images stay as they are.
 */
export function joinRows(rows: readonly WeightedTokens[]): readonly WeightedTokens[] {
  const joined: WeightedTokens[] = []
  for (const row of rows) {
    const before = joined.at(-1)
    if (before !== undefined && beginsWith(row, before))
      joined[joined.length - 1] = merge(before, row)
    else joined.push(row)
  }
  return joined
}

function beginsWith(row: WeightedTokens, start: WeightedTokens): boolean {
  if (chunksLength(start.chunks) > chunksLength(row.chunks)) return false
  const [whole, wanted] = [idsOf(row), idsOf(start)]
  if (whole === undefined || wanted === undefined) return false
  return wanted.every((id, at) => id === whole[at])
}

function merge(start: WeightedTokens, row: WeightedTokens): WeightedTokens {
  const weights = row.weights.slice()
  for (const [at, weight] of start.weights.entries()) weights[at] = Math.max(weight, weights[at]!)
  return { chunks: [tokenChunk(idsOf(row)!)], weights }
}

/** Undefined when there is an image among them. */
function idsOf({ chunks }: WeightedTokens): Int32Array | undefined {
  const ids = chunks.flatMap((chunk) => (chunk.type === 'tokens' ? [chunk.ids] : []))
  return ids.length === chunks.length ? concatIds(ids) : undefined
}
