import type { PieceIds } from './piece-encoder.ts'

/** Pieces kept in each of two generations: about 10 MB when both are full. */
const GENERATION = 65_536

/** Longer pieces hardly come back. In UTF-16 units. */
const LONGEST_PIECE = 48

/**
 * Remembers the ids of pieces. When a generation is full it becomes the old one, and the old one goes: what is used survives
 * without any bookkeeping per look-up.
 */
export interface PieceCache {
  get(piece: string): PieceIds | undefined
  /** Keeps the ids and returns them. */
  set(piece: string, ids: PieceIds): PieceIds
}

export function pieceCache(generation = GENERATION): PieceCache {
  let young = new Map<string, PieceIds>()
  let old = new Map<string, PieceIds>()
  const keep = (piece: string, ids: PieceIds) => {
    if (young.size >= generation) {
      old = young
      young = new Map()
    }
    young.set(detached(piece), ids)
    return ids
  }
  return {
    get(piece) {
      const ids = young.get(piece)
      if (ids !== undefined) return ids
      const kept = old.get(piece)
      return kept === undefined ? undefined : keep(piece, kept)
    },
    set: (piece, ids) => (piece.length > LONGEST_PIECE ? ids : keep(piece, ids)),
  }
}

/** A copy: a slice of more than 12 units would keep the whole text that it was cut from alive. */
function detached(piece: string): string {
  return piece.length <= 12 ? piece : JSON.parse(JSON.stringify(piece))
}
