/**
 * Seeds and random streams that depend on names, never on arrival order: a seed is derived from the run's seed and a path
 * such as (split, step, group, member, attempt, call).
 */

/** A uint32 from a seed and a path. Different paths give unrelated seeds; `('a', 'b')` differs from `('ab')`. */
export function deriveSeed(seed: number, ...path: readonly (string | number)[]): number {
  let hash = mix(0x9e3779b9, seed >>> 0)
  hash = mix(hash, Math.floor(seed / 2 ** 32) >>> 0)
  for (const part of path) {
    const text = typeof part === 'number' ? `#${part}` : `$${part}`
    for (let index = 0; index < text.length; index += 1) hash = mix(hash, text.charCodeAt(index))
    hash = mix(hash, text.length + 0x10000)
  }
  return finish(hash)
}

/** Seeded random numbers. */
export interface RandomStream {
  /** Uniform in [0, 1), 32 bits. */
  next(): number
  /** Uniform integer in [0, bound). */
  integer(bound: number): number
  /** A shuffled copy. */
  shuffle<T>(items: readonly T[]): T[]
}

/** sfc32 (Chris Doty-Humphrey's small fast counting generator), seeded by `deriveSeed`. */
export function randomStream(seed: number, ...path: readonly (string | number)[]): RandomStream {
  let a = deriveSeed(seed, ...path, 'a')
  let b = deriveSeed(seed, ...path, 'b')
  let c = deriveSeed(seed, ...path, 'c')
  let counter = 1
  const next32 = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = ((c << 21) | (c >>> 11)) + sum
    c |= 0
    return sum >>> 0
  }
  for (let round = 0; round < 12; round += 1) next32()
  const next = () => next32() / 2 ** 32
  const integer = (bound: number) => Math.floor(next() * bound)
  return {
    next,
    integer,
    shuffle(items) {
      const copy = [...items]
      for (let last = copy.length - 1; last > 0; last -= 1) {
        const other = integer(last + 1)
        const held = copy[last]!
        copy[last] = copy[other]!
        copy[other] = held
      }
      return copy
    },
  }
}

// The mixing steps of MurmurHash3 (x86, 32 bits).
function mix(hash: number, word: number): number {
  let k = Math.imul(word, 0xcc9e2d51)
  k = (k << 15) | (k >>> 17)
  k = Math.imul(k, 0x1b873593)
  const h = hash ^ k
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0
}

function finish(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
