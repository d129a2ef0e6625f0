import type { Tokenizer } from '@tiltyard/core'

import type { TokenizerDefinition } from '../definition.ts'
import { addedTokensText, fingerprint } from '../fingerprint.ts'
import { pinnedNfc } from '../unicode/nfc.ts'
import { byteDecoder } from './byte-decoder.ts'
import { pieceCache } from './piece-cache.ts'
import { pieceEncoder } from './piece-encoder.ts'
import type { BpeRecipe } from './recipe.ts'
import { bytesById, readVocabulary } from './vocabulary.ts'

/** Byte-level BPE: normalize, split, spell as bytes, merge. Pieces that were met before are remembered, in bounded memory. */
export function bpeTokenizer(
  definition: TokenizerDefinition,
  recipe: BpeRecipe,
  name: string,
): Tokenizer {
  const vocabulary = readVocabulary(definition, name)
  const { merges, spellings, size } = vocabulary
  const markers = new Map(definition.added.map(({ id, content }) => [content, id]))
  const { split } = recipe
  const normalize = recipe.normalization === 'nfc' ? pinnedNfc() : (text: string) => text
  const encodePiece = pieceEncoder(vocabulary, recipe.wholePieces)
  const cache = pieceCache()
  let output = new Int32Array(1024)

  return {
    specVersion: 'tokenizer/1',
    name,
    fingerprint: fingerprint([
      JSON.stringify([recipe.normalization, recipe.patterns, recipe.wholePieces]),
      addedTokensText(definition.added),
      spellings.join('\n'),
      merges.left,
      merges.right,
    ]),
    vocabularySize: size,
    markers,
    encode(text) {
      const clean = normalize(text)
      let length = 0
      split(clean, 0, clean.length, (start, end) => {
        const piece = clean.slice(start, end)
        const ids = cache.get(piece) ?? cache.set(piece, encodePiece(piece))
        const count = typeof ids === 'number' ? 1 : ids.length
        if (length + count > output.length) output = grown(output, length + count)
        if (typeof ids === 'number') output[length] = ids
        else output.set(ids, length)
        length += count
      })
      return output.slice(0, length)
    },
    ...byteDecoder(size, bytesById(vocabulary, markers)),
  }
}

function grown(array: Int32Array<ArrayBuffer>, least: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(least, array.length * 2))
  larger.set(array)
  return larger
}
