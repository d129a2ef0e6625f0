/** How one token is drawn. */
export interface Drawing {
  /** 0 takes the likeliest. */
  readonly temperature: number
  /** 0: all. */
  readonly topK: number
  readonly topP: number
}

/**
 * A token by inverse transform: `shares` are probabilities at the temperature, `u` is uniform in [0, 1). Ids are walked in
 * order, so that the choice depends on these numbers alone.
 */
export function chooseToken(
  shares: Float32Array,
  { temperature, topK, topP }: Drawing,
  u: number,
): number {
  if (temperature === 0) return likeliest(shares)
  if (topK === 0 && topP >= 1) return walk(shares, (id) => shares[id]!, u)
  const kept = keep(shares, topK, topP)
  let total = 0
  for (let id = 0; id < shares.length; id += 1) if (kept.has(id)) total += shares[id]!
  return walk(shares, (id) => (kept.has(id) ? shares[id]! : 0), u * total)
}

function likeliest(shares: Float32Array): number {
  let best = 0
  for (let id = 1; id < shares.length; id += 1) if (shares[id]! > shares[best]!) best = id
  return best
}

/** The k likeliest, and of these the fewest that together reach p; equal shares go by id. */
function keep(shares: Float32Array, topK: number, topP: number): ReadonlySet<number> {
  const order = Array.from(shares, (_, id) => id).sort((a, b) => shares[b]! - shares[a]! || a - b)
  const kept = new Set<number>()
  let reached = 0
  for (const id of topK === 0 ? order : order.slice(0, topK)) {
    kept.add(id)
    reached += shares[id]!
    if (reached >= topP) break
  }
  return kept
}

function walk(shares: Float32Array, share: (id: number) => number, target: number): number {
  let sum = 0
  let last = 0
  for (let id = 0; id < shares.length; id += 1) {
    const part = share(id)
    if (part === 0) continue
    sum += part
    last = id
    if (sum > target) return id
  }
  // Rounding can leave the sum a little short of one.
  return last
}
