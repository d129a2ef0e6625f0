import { isRecord, type TokenizerDefinition } from '../definition.ts'
import { UnknownPattern } from '../split/pattern.ts'
import { patternSplitter, splitterChain, type Splitter } from '../split/splitter.ts'

/** How byte-level BPE treats text before it merges. */
export interface BpeRecipe {
  readonly normalization: 'none' | 'nfc'
  /** The split patterns, in order. Part of the fingerprint. */
  readonly patterns: readonly string[]
  readonly split: Splitter
  /** A piece that is in the vocabulary is taken whole, whatever its merges say. */
  readonly wholePieces: boolean
}

/** The pattern that the `ByteLevel` pre-tokenizer brings. */
const BYTE_LEVEL_PATTERN = String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

/** The recipe of a definition that our own engine covers, or why it doesn't. */
export function bpeRecipe(definition: TokenizerDefinition): BpeRecipe | { readonly why: string } {
  const { model, normalizer, preTokenizer, decoder } = definition
  if (model['type'] !== 'BPE') return { why: `a model of type ${String(model['type'])}` }
  for (const option of [
    'dropout',
    'unk_token',
    'continuing_subword_prefix',
    'end_of_word_suffix',
  ]) {
    const value = model[option] ?? ''
    if (value !== '' && value !== 0) return { why: `the model option ${option}` }
  }
  if (model['byte_fallback'] === true) return { why: 'byte fallback' }
  if (!isRecord(decoder) || decoder['type'] !== 'ByteLevel') return { why: 'its decoder' }
  const normalization = normalizationOf(normalizer)
  if (normalization === undefined) return { why: 'its normalizer' }
  const patterns = patternsOf(preTokenizer)
  if (patterns === undefined) return { why: 'its pre-tokenizer' }
  try {
    const split = splitterChain(patterns.map(patternSplitter))
    return { normalization, patterns, split, wholePieces: model['ignore_merges'] === true }
  } catch (error) {
    if (error instanceof UnknownPattern) return { why: error.message }
    throw error
  }
}

function normalizationOf(normalizer: unknown): 'none' | 'nfc' | undefined {
  if (normalizer === undefined) return 'none'
  if (!isRecord(normalizer)) return undefined
  if (normalizer['type'] === 'NFC') return 'nfc'
  const steps = normalizer['normalizers']
  return normalizer['type'] === 'Sequence' && Array.isArray(steps) && steps.length === 0
    ? 'none'
    : undefined
}

/** Split patterns that end in a byte-level step; undefined for anything else. */
function patternsOf(preTokenizer: unknown): readonly string[] | undefined {
  if (!isRecord(preTokenizer)) return undefined
  const listed =
    preTokenizer['type'] === 'Sequence' ? preTokenizer['pretokenizers'] : [preTokenizer]
  if (!Array.isArray(listed)) return undefined
  const patterns: string[] = []
  for (const [index, step] of listed.entries() as Iterable<[number, unknown]>) {
    if (!isRecord(step)) return undefined
    const last = index === listed.length - 1
    if (step['type'] === 'ByteLevel') {
      if (!last || step['add_prefix_space'] === true) return undefined
      return step['use_regex'] === false ? patterns : [...patterns, BYTE_LEVEL_PATTERN]
    }
    const pattern = isRecord(step['pattern']) ? step['pattern']['Regex'] : undefined
    const plain = step['behavior'] === 'Isolated' && step['invert'] !== true
    if (step['type'] !== 'Split' || typeof pattern !== 'string' || !plain) return undefined
    patterns.push(pattern)
  }
  return undefined
}
