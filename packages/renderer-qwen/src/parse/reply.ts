import type { ParsedReply, Termination } from '@tiltyard/core'
import { pythonTrim, trimNewlines, trimNewlinesStart } from '@tiltyard/core/rendering'

import type { Layout } from '../layouts/layout.ts'
import type { Reading } from './reading.ts'

/** Reasoning without the white space that the layout puts around it. */
export function shownReasoning({ thought }: Reading, { calls }: Layout): string {
  return calls === 'xml' ? pythonTrim(thought) : trimNewlines(thought)
}

/** Content without the white space that the layout puts around it and before calls. */
export function shownContent({ said, called, thinkBlock }: Reading, { trim }: Layout): string {
  const text = thinkBlock ? trimNewlinesStart(said) : said
  if (trim === 'all') return pythonTrim(text)
  if (trim === 'beside_calls') return called ? pythonTrim(text) : text
  return called && text.endsWith('\n') ? text.slice(0, -1) : text
}

/** The message that a finished reading came to. `stopText` is what stands from the stop token on. */
export function parsedReply(
  reading: Reading,
  layout: Layout,
  termination: Termination,
  stopText: string,
): ParsedReply {
  const reasoning = shownReasoning(reading, layout)
  const trailing = pythonTrim(reading.after)
  const { calls, malformed, spans } = reading
  return {
    message: {
      role: 'assistant',
      content: shownContent(reading, layout),
      ...(reasoning === '' ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { toolCalls: [...calls] }),
    },
    termination,
    malformed: [...malformed],
    ...(trailing === '' ? {} : { trailing }),
    spans: [
      ...spans.map((span) => ({ ...span })),
      ...(stopText === '' ? [] : [{ kind: 'markup' as const, text: stopText }]),
    ],
  }
}
