import { ConfigError } from '../errors.ts'
import type { Tokenizer } from '../tokenizer.ts'
import {
  chunkLength,
  mergeChunks,
  tokenChunk,
  type ImageChunk,
  type PromptChunk,
} from '../tokens.ts'

/** A control token, which only a renderer writes. */
export interface Marker {
  readonly type: 'marker'
  readonly text: string
  readonly id: number
}

/**
 * A part of a rendered conversation. A string is text, whoever wrote it: whatever it spells, it becomes no marker. Neighbouring
 * strings are one text to the tokenizer; markers and images part them.
 */
export type Segment = string | Marker | ImageChunk

/**
 * The markers that a layout needs, by its own names for them.
 * @throws ConfigError listing those that the tokenizer lacks: it belongs to another model family.
 */
export function findMarkers<Name extends string>(
  tokenizer: Tokenizer,
  texts: Readonly<Record<Name, string>>,
): Readonly<Record<Name, Marker>> {
  const entries = Object.entries<string>(texts).map(([name, text]) => {
    return [name, { type: 'marker', text, id: tokenizer.markers.get(text) ?? -1 }] as const
  })
  const missing = entries.filter(([, { id }]) => id === -1).map(([, { text }]) => text)
  if (missing.length > 0) {
    throw new ConfigError('tokenizer', [
      {
        at: tokenizer.name,
        message: `lacks the markers ${missing.join(' ')} that the layout writes; use the tokenizer of the model`,
      },
    ])
  }
  return Object.fromEntries(entries) as Readonly<Record<Name, Marker>>
}

/** Segments as prompt chunks. */
export function encodeSegments(
  tokenizer: Tokenizer,
  segments: readonly Segment[],
): readonly PromptChunk[] {
  const chunks: PromptChunk[] = []
  let text = ''
  const flush = () => {
    if (text !== '') chunks.push(tokenChunk(tokenizer.encode(text)))
    text = ''
  }
  for (const segment of segments) {
    if (typeof segment === 'string') {
      text += segment
      continue
    }
    flush()
    chunks.push(segment.type === 'marker' ? tokenChunk([segment.id]) : segment)
  }
  flush()
  return mergeChunks(chunks.filter((chunk) => chunkLength(chunk) > 0))
}

/**
 * Segments as a server encodes them that looks for markers anywhere in the whole text: what a caller spelled as a marker becomes
 * one. Only for comparing with such a server.
 */
export function encodeNaively(
  tokenizer: Tokenizer,
  segments: readonly Segment[],
): readonly PromptChunk[] {
  const parts: Segment[] = []
  for (const segment of segments) {
    const before = parts.at(-1)
    const text =
      typeof segment === 'string' || segment.type === 'marker' ? textOfSegment(segment) : undefined
    if (text === undefined) parts.push(segment)
    else if (typeof before === 'string') parts[parts.length - 1] = before + text
    else parts.push(text)
  }
  return encodeSegments(
    tokenizer,
    parts.flatMap((part) => (typeof part === 'string' ? splitAtMarkers(tokenizer, part) : [part])),
  )
}

/** Text with what it spells as markers made into markers; of two that start at one place the longer. */
export function splitAtMarkers(tokenizer: Tokenizer, text: string): readonly Segment[] {
  const texts = [...tokenizer.markers.keys()].toSorted((a, b) => b.length - a.length)
  if (texts.length === 0) return [text]
  const pattern = new RegExp(
    `(${texts.map((marker) => marker.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')).join('|')})`,
  )
  return text.split(pattern).flatMap((part, index): readonly Segment[] => {
    if (index % 2 === 1) return [{ type: 'marker', text: part, id: tokenizer.markers.get(part)! }]
    return part === '' ? [] : [part]
  })
}

function textOfSegment(segment: string | Marker): string {
  return typeof segment === 'string' ? segment : segment.text
}

/** What may stand in a template's gap: text of the caller, or segments that were made before. */
export type Gap = Segment | readonly Segment[]

/**
 * Writes segments from template literals. What stands in the literal is the template's own: markers in it are markers. What stands
 * in a gap is the caller's: text stays text.
 *
 * ```ts
 * const write = templateWriter(tokenizer)
 * write`<|im_start|>user\n${message}<|im_end|>\n`
 * ```
 */
export type TemplateWriter = (
  literal: TemplateStringsArray,
  ...gaps: readonly Gap[]
) => readonly Segment[]

export function templateWriter(tokenizer: Tokenizer): TemplateWriter {
  // A literal's array of strings is the same object each time that its place in the program is reached.
  const known = new WeakMap<TemplateStringsArray, readonly (readonly Segment[])[]>()
  return (literal, ...gaps) => {
    let parts = known.get(literal)
    if (parts === undefined) {
      parts = literal.map((text) => splitAtMarkers(tokenizer, text))
      known.set(literal, parts)
    }
    return parts.flatMap((part, index) => {
      const gap = gaps[index]
      return gap === undefined ? part : [...part, ...(isList(gap) ? gap : [gap])]
    })
  }
}

function isList(gap: Gap): gap is readonly Segment[] {
  return Array.isArray(gap)
}
