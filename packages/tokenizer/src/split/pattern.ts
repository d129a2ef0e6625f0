import { generalCategory, whiteSpace } from '../unicode/properties.ts'
import {
  CODE_POINTS,
  complement,
  pointsOf,
  singlePoint,
  union,
  type CodePointSet,
} from '../unicode/ranges.ts'

/** A piece of a regular expression: syntax that is kept as it is, or an atom that matches one code point of a set. */
export type PatternPart =
  | { readonly kind: 'syntax'; readonly text: string }
  | { readonly kind: 'atom'; readonly points: CodePointSet }

/** The pattern uses something that this reader doesn't know; another engine must take it. */
export class UnknownPattern extends Error {}

/**
 * Reads a regular expression of the Oniguruma dialect as far as tokenizers use it: alternatives, groups, `(?i:…)`, lookaround,
 * quantifiers, classes, general categories. @throws UnknownPattern for anything else.
 */
export function readPattern(source: string): readonly PatternPart[] {
  const parts: PatternPart[] = []
  const closing: (() => void)[] = []
  let ignoreCase = false
  let at = 0
  const fail = (what: string): never => {
    throw new UnknownPattern(`${what} at ${at} in ${source}`)
  }

  const group = (open: string, inner = ignoreCase) => {
    const outer = ignoreCase
    parts.push({ kind: 'syntax', text: open })
    closing.push(() => (ignoreCase = outer))
    ignoreCase = inner
  }

  while (at < source.length) {
    const rest = source.slice(at)
    const opening = /^\((?:\?(?:i:|:|!|=|<!|<=))?/.exec(rest)?.[0]
    const quantifier = /^(?:[?*+]|\{\d+(?:,\d*)?\})\??/.exec(rest)?.[0]
    if (opening === '(' && rest.startsWith('(?')) fail('unknown group')
    if (opening !== undefined) {
      if (opening === '(' || opening === '(?i:') group('(?:', opening === '(?i:' || ignoreCase)
      else group(opening)
      at += opening.length
    } else if (rest.startsWith(')')) {
      const close = closing.pop() ?? fail('unbalanced group')
      close()
      parts.push({ kind: 'syntax', text: ')' })
      at += 1
    } else if (quantifier !== undefined) {
      if (rest[quantifier.length] === '+') fail('possessive quantifier')
      parts.push({ kind: 'syntax', text: quantifier })
      at += quantifier.length
    } else if (rest.startsWith('|')) {
      parts.push({ kind: 'syntax', text: '|' })
      at += 1
    } else if (/^[.^$]/.test(rest)) {
      fail(`unknown operator ${rest[0]}`)
    } else if (rest.startsWith('[')) {
      const { points, length } = readClass(rest, fail)
      parts.push({ kind: 'atom', points })
      at += length
    } else {
      const { points, length } = readOne(rest, fail)
      parts.push({ kind: 'atom', points: ignoreCase ? foldCase(points) : points })
      at += length
    }
  }
  if (closing.length > 0) fail('unbalanced group')
  return parts
}

interface Read {
  readonly points: CodePointSet
  readonly length: number
}

type Fail = (what: string) => never

function readClass(text: string, fail: Fail): Read {
  const negated = text.startsWith('[^')
  const sets: CodePointSet[] = []
  let at = negated ? 2 : 1
  while (text[at] !== ']') {
    if (at >= text.length) fail('unclosed class')
    if (text[at] === '[' || text.startsWith('&&', at)) fail('nested class')
    const first = readOne(text.slice(at), fail)
    at += first.length
    if (text[at] === '-' && text[at + 1] !== ']') {
      const last = readOne(text.slice(at + 1), fail)
      at += 1 + last.length
      const [start, end] = [pointOf(first.points), pointOf(last.points)]
      if (start === undefined || end === undefined || end < start) return fail('bad range')
      sets.push([start, end + 1])
    } else {
      sets.push(first.points)
    }
  }
  const points = union(sets)
  return { points: negated ? complement(points) : points, length: at + 1 }
}

function readOne(text: string, fail: Fail): Read {
  if (!text.startsWith('\\')) {
    const point = text.codePointAt(0)!
    return { points: singlePoint(point), length: point > 0xffff ? 2 : 1 }
  }
  const property = /^\\([pP])\{(\^?)(\w+)\}/.exec(text)
  if (property !== null) {
    const [whole, letter, caret, name] = property
    const points = generalCategory(name!) ?? fail(`unknown property ${name}`)
    const outside = (letter === 'P') !== (caret === '^')
    return { points: outside ? complement(points) : points, length: whole.length }
  }
  const code = /^\\(?:u([\da-fA-F]{4})|x([\da-fA-F]{2})|x\{([\da-fA-F]+)\})/.exec(text)
  if (code !== null) {
    const point = Number.parseInt(code[1] ?? code[2] ?? code[3]!, 16)
    if (point >= CODE_POINTS) fail('no such code point')
    return { points: singlePoint(point), length: code[0].length }
  }
  const points = escapes(text[1] ?? fail('nothing after the backslash'))
  return { points: points ?? fail(`unknown escape \\${text[1]}`), length: 2 }
}

function escapes(letter: string): CodePointSet | undefined {
  const controls: Readonly<Record<string, string>> = { r: '\r', n: '\n', t: '\t', f: '\f', v: '\v' }
  const control = controls[letter]
  if (control !== undefined) return pointsOf(control)
  if (letter === 's') return whiteSpace
  if (letter === 'S') return complement(whiteSpace)
  if (letter === 'd') return generalCategory('Nd')
  if (letter === 'D') return complement(generalCategory('Nd')!)
  return /^[^\p{L}\p{N}]$/u.test(letter) ? pointsOf(letter) : undefined
}

function pointOf(set: CodePointSet): number | undefined {
  return set.length === 2 && set[1] === set[0]! + 1 ? set[0] : undefined
}

/** Simple case folding of single letters: what tokenizers write in `(?i:…)` are ASCII letters. */
function foldCase(points: CodePointSet): CodePointSet {
  const point = pointOf(points)
  if (point === undefined || point > 0x7f) {
    throw new UnknownPattern('only single ASCII letters are read where case is ignored')
  }
  const char = String.fromCodePoint(point)
  const others: Readonly<Record<string, string>> = { s: '\u017F', k: '\u212A' }
  return pointsOf(char.toLowerCase() + char.toUpperCase() + (others[char.toLowerCase()] ?? ''))
}
