/**
 * A uniform number in [0, 1) of 53 bits for a counter in a stream of a seed. No state: number n of a stream is the same
 * whatever else was drawn.
 */
export function uniform(seed: number, stream: number, counter: number): number {
  const key = mix(mix(seed | 0, 0x9e3779b9), stream)
  const high = mix(key, counter)
  const low = mix(high ^ 0x5bd1e995, counter)
  return ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53
}

// One word into a hash, by the mixing steps of MurmurHash3.
function mix(hash: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51)
  k = Math.imul((k << 15) | (k >>> 17), 0x1b873593)
  let h = hash ^ k
  h = (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}
