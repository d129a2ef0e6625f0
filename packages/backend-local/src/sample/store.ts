import type { SequenceCache } from './batch.ts'

/** Keys and values of sequences by their tokens, so that a prompt that goes on from one is only read from there. */
export interface CacheStore {
  put(tokens: Int32Array, cache: SequenceCache): void
  /** The longest stored sequence that `tokens` start with, of which at least one token is left to read. */
  find(tokens: Int32Array): FoundCache | undefined
  readonly bytes: number
}

export interface FoundCache {
  readonly cache: SequenceCache
  /** How many positions of the cache to use. */
  readonly length: number
}

interface Entry {
  readonly tokens: Int32Array
  readonly cache: SequenceCache
}

/**
 * The least recently used go first when `limit` bytes are exceeded. That costs time and never changes a result: reading a
 * sequence again gives the same bits.
 */
export function cacheStore(limit: number): CacheStore {
  const entries = new Map<number, Entry>()
  const lengths = new Map<number, number>()
  let bytes = 0
  const sizeOf = ({ tokens, cache }: Entry) => tokens.byteLength + cache.data.byteLength
  const drop = (key: number, entry: Entry) => {
    entries.delete(key)
    bytes -= sizeOf(entry)
    const left = lengths.get(entry.tokens.length)! - 1
    if (left === 0) lengths.delete(entry.tokens.length)
    else lengths.set(entry.tokens.length, left)
  }
  return {
    put(tokens, cache) {
      const key = hashes(tokens)[tokens.length]!
      const old = entries.get(key)
      if (old !== undefined) drop(key, old)
      const entry = { tokens, cache }
      entries.set(key, entry)
      bytes += sizeOf(entry)
      lengths.set(tokens.length, (lengths.get(tokens.length) ?? 0) + 1)
      for (const [oldest, candidate] of entries) {
        if (bytes <= limit) break
        drop(oldest, candidate)
      }
    },
    find(tokens) {
      const keys = hashes(tokens)
      const candidates = [...lengths.keys()]
        .filter((length) => length <= tokens.length)
        .sort((a, b) => b - a)
      for (const length of candidates) {
        const key = keys[length]!
        const entry = entries.get(key)
        if (entry === undefined || !startsWith(tokens, entry.tokens)) continue
        entries.delete(key)
        entries.set(key, entry)
        return { cache: entry.cache, length: Math.min(length, tokens.length - 1) }
      }
      return undefined
    },
    get bytes() {
      return bytes
    },
  }
}

/** A key of 52 bits for every leading part of the tokens. A collision costs a miss: tokens are compared too. */
function hashes(tokens: Int32Array): Float64Array {
  const keys = new Float64Array(tokens.length + 1)
  let high = 0x243f6a88
  let low = 0x85a308d3
  for (let at = 0; at < tokens.length; at += 1) {
    high = Math.imul(high ^ tokens[at]!, 0x01000193) ^ (high >>> 15)
    low = Math.imul(low + tokens[at]!, 0x85ebca6b) ^ (low >>> 13)
    keys[at + 1] = (high >>> 0) * 2 ** 20 + (low >>> 12)
  }
  return keys
}

function startsWith(tokens: Int32Array, start: Int32Array): boolean {
  if (start.length > tokens.length) return false
  for (let at = 0; at < start.length; at += 1) if (tokens[at] !== start[at]) return false
  return true
}
