/** Stands for ids, read one after the other; of each prefix it costs nothing more to ask. */
export interface IdDigest {
  add(id: number): void
  /** Ids so far. */
  readonly length: number
  /** Of length and content: 64 bits of the latter, so that others of equal length have another. */
  key(): string
  /** To go on from here in more than one way. */
  copy(): IdDigest
}

/** Two hashes of 32 bits, each of multiplications and rotations, unlike each other. */
export function createIdDigest(length = 0, first = 0x9e3779b9, second = 0x85ebca6b): IdDigest {
  let count = length
  let a = first | 0
  let b = second | 0
  return {
    add(id) {
      const word = Math.imul(id + 1, 0xcc9e2d51)
      a = (Math.imul(rotated(a ^ rotated(word, 15), 13), 5) + 0xe6546b64) | 0
      b = Math.imul(rotated(b, 17) ^ word, 0x9e3779b1)
      count += 1
    },
    get length() {
      return count
    },
    key: () => `${count} ${a >>> 0} ${b >>> 0}`,
    copy: () => createIdDigest(count, a, b),
  }
}

function rotated(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits))
}
