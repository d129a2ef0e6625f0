import type { ReplyDelta } from '@tiltyard/core'
import { argumentsText, isPythonSpace } from '@tiltyard/core/rendering'

import type { Layout } from '../layouts/layout.ts'
import type { Reading } from './reading.ts'
import { shownContent, shownReasoning } from './reply.ts'

function isNewline(char: string): boolean {
  return char === '\n'
}

/** What was read since the last look, so that a delta costs its own length. */
export interface Fresh {
  readonly thought: string
  readonly said: string
}

/** Turns a growing reading into deltas. White space that may turn out to be the layout's is held back. */
export function deltaWriter(
  layout: Layout,
): (reading: Reading, fresh: Fresh, done: boolean) => readonly ReplyDelta[] {
  const reasoning = shownText(layout.calls === 'xml' ? trimmer(isPythonSpace) : trimmer(isNewline))
  const content = shownText(contentTrimmer(layout))
  let calls = 0

  return (reading, fresh, done) => {
    const deltas: ReplyDelta[] = []
    const thought = reasoning(fresh.thought, reading, () => {
      return done || reading.thinkingDone ? shownReasoning(reading, layout) : undefined
    })
    if (thought !== '') deltas.push({ type: 'reasoning', text: thought })
    const said = content(fresh.said, reading, () => {
      return done || reading.called ? shownContent(reading, layout) : undefined
    })
    if (said !== '') deltas.push({ type: 'text', text: said })
    for (; calls < reading.calls.length; calls += 1) {
      const call = reading.calls[calls]!
      deltas.push({ type: 'call', index: calls, id: call.id, name: call.name })
      deltas.push({ type: 'arguments', index: calls, text: argumentsText(call) })
    }
    return deltas
  }
}

/** Gives what of a growing text is sure to be shown. */
type Trimmer = (fresh: string, reading: Reading) => string

/** Counts what a trimmer gave; once the whole is known the rest follows, and then nothing. */
function shownText(trim: Trimmer) {
  let given = 0
  let settled = false
  return (fresh: string, reading: Reading, whole: () => string | undefined) => {
    if (settled) return ''
    const known = whole()
    const text = known === undefined ? trim(fresh, reading) : known.slice(given)
    settled = known !== undefined
    given += text.length
    return text
  }
}

/** Drops what `isSpace` at the beginning, holds it at the end. */
function trimmer(isSpace: (char: string) => boolean): Trimmer {
  let held = ''
  let begun = false
  return (fresh) => {
    const text = held + fresh
    let start = 0
    if (!begun) while (start < text.length && isSpace(text[start]!)) start += 1
    begun ||= start < text.length
    let end = text.length
    while (end > start && isSpace(text[end - 1]!)) end -= 1
    held = text.slice(end)
    return text.slice(start, end)
  }
}

function contentTrimmer({ trim }: Layout): Trimmer {
  if (trim === 'all') return trimmer(isPythonSpace)
  if (trim === 'beside_calls') return besideCalls()
  let held = ''
  let begun = false
  return (fresh, { thinkBlock }) => {
    let text = held + fresh
    if (!begun && thinkBlock) text = text.replace(/^\n+/, '')
    begun ||= text !== ''
    // One newline before a call is the layout's.
    held = text.endsWith('\n') ? '\n' : ''
    return text.slice(0, text.length - held.length)
  }
}

/** Leading white space goes when a call follows and stays when none does: then all waits. */
function besideCalls(): Trimmer {
  const inner = trimmer(isPythonSpace)
  let first: boolean | undefined
  return (fresh) => {
    if (fresh !== '') first ??= !isPythonSpace(fresh[0]!)
    return first === true ? inner(fresh, undefined as never) : ''
  }
}
