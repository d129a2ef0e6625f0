import { ConfigError } from '@tiltyard/core'

import { isId, type TokenizerDefinition } from '../definition.ts'
import { byteAlphabet, byteReader } from './byte-alphabet.ts'
import type { MergeColumns } from './merge-table.ts'

/** A byte-level vocabulary, apart from the JSON that it was read from. */
export interface Vocabulary {
  /** Largest id plus one, markers included. */
  readonly size: number
  /** Id of each single byte. */
  readonly byteIds: Int32Array
  readonly merges: MergeColumns
  /** Ids by spelling in the byte alphabet. */
  readonly ids: ReadonlyMap<string, number>
  /** Spellings by id; undefined where an id is a marker's or nobody's. */
  readonly spellings: readonly (string | undefined)[]
  readonly alphabet: readonly string[]
}

/**
 * The vocabulary of a byte-level BPE definition.
 * @throws ConfigError that names the entry at fault.
 */
export function readVocabulary(definition: TokenizerDefinition, file: string): Vocabulary {
  const fail = (at: string, message: string): never => {
    throw new ConfigError(`tokenizer ${file}`, [{ at, message }])
  }
  const vocab = definition.model['vocab'] as Readonly<Record<string, unknown>> | undefined
  if (typeof vocab !== 'object' || vocab === null) return fail('model.vocab', 'expected an object')
  const ids = new Map<string, number>()
  let size = 0
  for (const spelling of Object.keys(vocab)) {
    const id = vocab[spelling]
    if (!isId(id)) return fail(`model.vocab.${spelling}`, `expected an id, got ${String(id)}`)
    ids.set(spelling, id)
    if (id >= size) size = id + 1
  }
  for (const { id } of definition.added) if (id >= size) size = id + 1

  const spellings = Array.from<string | undefined>({ length: size })
  for (const [spelling, id] of ids) spellings[id] = spelling
  const alphabet = byteAlphabet()
  const byteIds = Int32Array.from(alphabet, (char, byte) => {
    return ids.get(char) ?? fail('model.vocab', `lacks the byte ${byte}, spelled "${char}"`)
  })
  const merges = readMerges(definition.model['merges'], ids, fail)
  return { size, byteIds, merges, ids, spellings, alphabet }
}

/** The bytes of ids, made when first asked for. Undefined when nothing has the id. */
export function bytesById(
  { size, spellings, alphabet }: Vocabulary,
  markers: ReadonlyMap<string, number>,
): (id: number) => Uint8Array | undefined {
  const read = byteReader(alphabet)
  const encoder = new TextEncoder()
  const known = Array.from<Uint8Array | undefined>({ length: size })
  for (const [content, id] of markers) known[id] = encoder.encode(content)
  return (id) => {
    const bytes = known[id]
    if (bytes !== undefined) return bytes
    const spelling = spellings[id]
    if (spelling === undefined) return undefined
    return (known[id] = read(spelling) ?? encoder.encode(spelling))
  }
}

/** Merges are written as `"a b"` or as `["a", "b"]`. */
function readMerges(
  merges: unknown,
  ids: ReadonlyMap<string, number>,
  fail: (at: string, message: string) => never,
): MergeColumns {
  if (!Array.isArray(merges)) return fail('model.merges', 'expected a list')
  const left = new Int32Array(merges.length)
  const right = new Int32Array(merges.length)
  const result = new Int32Array(merges.length)
  for (let rank = 0; rank < merges.length; rank += 1) {
    const [a, b] = pairOf(merges[rank]) ?? fail(`model.merges.${rank}`, 'expected two tokens')
    const idA = ids.get(a)
    const idB = ids.get(b)
    const joined = ids.get(a + b)
    if (idA === undefined || idB === undefined || joined === undefined) {
      return fail(
        `model.merges.${rank}`,
        `"${a}", "${b}" or what they make is not in the vocabulary`,
      )
    }
    left[rank] = idA
    right[rank] = idB
    result[rank] = joined
  }
  return { left, right, result }
}

function pairOf(merge: unknown): readonly [string, string] | undefined {
  if (typeof merge === 'string') {
    const space = merge.indexOf(' ')
    return space > 0 ? [merge.slice(0, space), merge.slice(space + 1)] : undefined
  }
  if (!Array.isArray(merge) || merge.length !== 2) return undefined
  const [a, b] = merge as readonly unknown[]
  return typeof a === 'string' && typeof b === 'string' ? [a, b] : undefined
}
