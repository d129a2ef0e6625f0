/**
 * Cuts a list into `min(parts, length)` runs of nearly equal length, in order: run i begins at ⌊i · length / parts⌋.
 * 5 in 2 gives lengths 2 and 3; 7 in 3 gives 2, 2, 3; 2 in 10 gives 1, 1.
 */
export function splitEvenly<T>(items: readonly T[], parts: number): readonly (readonly T[])[] {
  const count = Math.min(parts, items.length)
  return Array.from({ length: count }, (_, index) =>
    items.slice(
      Math.floor((index * items.length) / count),
      Math.floor(((index + 1) * items.length) / count),
    ),
  )
}

/**
 * Packs items by their lengths into as few calls as first-fit on falling length finds, each of at most `budget` tokens; an item
 * longer than the budget gets a call of its own. The result lists indices; the same lengths give the same packs.
 */
export function packByTokens(
  lengths: readonly number[],
  budget: number = Infinity,
): readonly (readonly number[])[] {
  if (budget === Infinity) return lengths.length === 0 ? [] : [lengths.map((_, index) => index)]
  const packs: { readonly items: number[]; left: number }[] = []
  const order = lengths.map((_, index) => index).sort((a, b) => lengths[b]! - lengths[a]!)
  for (const item of order) {
    const length = lengths[item]!
    const pack = packs.find(({ left }) => left >= length)
    if (pack === undefined) packs.push({ items: [item], left: budget - length })
    else {
      pack.items.push(item)
      pack.left -= length
    }
  }
  return packs.map(({ items }) => items.toSorted((a, b) => a - b))
}
