import { mergeTable } from './merge-table.ts'
import { mergeInPlace } from './merge.ts'
import type { Vocabulary } from './vocabulary.ts'

/** One id, or several. */
export type PieceIds = number | Int32Array

/** Ids of a piece of text that no split pattern cuts. */
export function pieceEncoder(
  vocabulary: Vocabulary,
  wholePieces: boolean,
): (piece: string) => PieceIds {
  const { byteIds, alphabet } = vocabulary
  const merges = mergeTable(vocabulary.merges)
  const wholes = wholePieces ? vocabulary.ids : undefined
  const encoder = new TextEncoder()
  let bytes = new Uint8Array(256)
  let ids = new Int32Array(256)

  return (piece) => {
    if (bytes.length < piece.length * 3) {
      bytes = new Uint8Array(piece.length * 6)
      ids = new Int32Array(piece.length * 6)
    }
    const { written } = encoder.encodeInto(piece, bytes)
    if (wholes !== undefined) {
      let spelled = ''
      for (let at = 0; at < written; at += 1) spelled += alphabet[bytes[at]!]!
      const whole = wholes.get(spelled)
      if (whole !== undefined) return whole
    }
    for (let at = 0; at < written; at += 1) ids[at] = byteIds[bytes[at]!]!
    const length = mergeInPlace(ids, written, merges)
    return length === 1 ? ids[0]! : ids.slice(0, length)
  }
}
