import { CODE_POINTS, type CodePointSet } from '../unicode/ranges.ts'
import { readPattern, UnknownPattern, type PatternPart } from './pattern.ts'

/** Cuts text into pieces that no merge crosses. Calls `visit` with the bounds (in UTF-16 units) of each, in order, without gaps. */
export type Splitter = (
  text: string,
  start: number,
  end: number,
  visit: (start: number, end: number) => void,
) => void

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * A splitter for one pattern: what matches is a piece, and so is what lies between.
 *
 * The pattern tells code points apart only by the sets that it names. So each code point is replaced by a letter for its
 * class, and the pattern by one over those letters: a one-byte string and tiny classes, which is several times faster than
 * the same pattern over Unicode, and does not depend on the engine's Unicode version.
 * @throws UnknownPattern
 */
export function patternSplitter(source: string): Splitter {
  const parts = readPattern(source)
  const { table, letterSets } = classify(parts)
  // Half a surrogate pair is no character: its bytes become those of U+FFFD, so its class is that one's.
  table.fill(table[0xfffd]!, 0xd800, 0xe000)
  const translated = parts
    .map((part) => (part.kind === 'syntax' ? part.text : letterClass(letterSets.get(part.points)!)))
    .join('')
  const here = new RegExp(translated, 'y')
  const next = new RegExp(translated, 'g')
  const decoder = new TextDecoder()
  let classes = new Uint8Array(1024)

  return (text, start, end, visit) => {
    const units = end - start
    if (classes.length < units) classes = new Uint8Array(units * 2)
    let length = 0
    let wide = false
    for (let at = start; at < end; at += 1) {
      const unit = text.charCodeAt(at)
      const point = unit >= 0xd800 && unit < 0xdc00 ? text.codePointAt(at)! : unit
      classes[length] = table[point]!
      length += 1
      if (point > 0xffff) {
        wide = true
        at += 1
      }
    }
    const letters = decoder.decode(classes.subarray(0, length))
    // Bounds count code points; where some take two units, `position` follows along.
    let position = start
    const piece = (from: number, to: number) => {
      const begin = position
      if (wide) {
        for (let at = from; at < to; at += 1) {
          position += text.codePointAt(position)! > 0xffff ? 2 : 1
        }
      } else {
        position += to - from
      }
      visit(begin, position)
      return to
    }
    for (let from = 0; from < length;) {
      here.lastIndex = from
      if (here.test(letters) && here.lastIndex > from) {
        from = piece(from, here.lastIndex)
        continue
      }
      const match = nextMatch(next, letters, from)
      from = piece(from, match?.index ?? length)
      if (match !== undefined) from = piece(from, from + match[0].length)
    }
  }
}

/** Applies splitters one after the other, each to the pieces of the one before. */
export function splitterChain(splitters: readonly Splitter[]): Splitter {
  const [first, ...others] = splitters
  if (first === undefined) return (_, start, end, visit) => visit(start, end)
  if (others.length === 0) return first
  const rest = splitterChain(others)
  return (text, start, end, visit) => {
    first(text, start, end, (from, to) => rest(text, from, to, visit))
  }
}

/** The first match of at least one letter from `from` on. */
function nextMatch(pattern: RegExp, letters: string, from: number): RegExpExecArray | undefined {
  for (let at = from; at < letters.length; at += 1) {
    pattern.lastIndex = at
    const match = pattern.exec(letters)
    if (match === null) return undefined
    if (match[0] !== '') return match
    at = match.index
  }
  return undefined
}

function letterClass(letters: string): string {
  return letters.length === 1 ? letters : `[${letters}]`
}

/**
 * The classes of a pattern: two code points share one when no atom tells them apart. `table` gives the letter of each code
 * point, `letterSets` the letters that make up an atom.
 */
function classify(parts: readonly PatternPart[]): {
  readonly table: Uint8Array
  readonly letterSets: ReadonlyMap<CodePointSet, string>
} {
  const sets = parts.flatMap((part) => (part.kind === 'atom' ? [part.points] : []))
  const bounds = [...new Set([0, ...sets.flat(), CODE_POINTS])].sort((a, b) => a - b)
  const cursors = sets.map(() => 0)
  const letterOf = new Map<string, string>()
  const members = sets.map(() => new Set<string>())
  const table = new Uint8Array(CODE_POINTS)
  for (let index = 0; index + 1 < bounds.length; index += 1) {
    const start = bounds[index]!
    const inside = sets.map((set, which) => {
      while (cursors[which]! < set.length && set[cursors[which]! + 1]! <= start)
        cursors[which]! += 2
      return cursors[which]! < set.length && set[cursors[which]!]! <= start
    })
    const signature = inside.map(Number).join('')
    let letter = letterOf.get(signature)
    if (letter === undefined) {
      letter = LETTERS[letterOf.size]
      if (letter === undefined) throw new UnknownPattern('the pattern has too many classes')
      letterOf.set(signature, letter)
      for (const [which, set] of members.entries()) if (inside[which] === true) set.add(letter)
    }
    table.fill(letter.charCodeAt(0), start, bounds[index + 1])
  }
  return {
    table,
    letterSets: new Map(sets.map((set, which) => [set, [...members[which]!].join('')])),
  }
}
