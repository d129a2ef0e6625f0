import type { AssistantMessage } from '@tiltyard/core'
import { pythonTrim, trimNewlines, trimNewlinesStart } from '@tiltyard/core/rendering'

import type { Scene } from './scene.ts'

/** An assistant message's text, taken apart as its template does: what was thought, and what is said. */
export interface Spoken {
  readonly reasoning: string
  readonly content: string
}

export function spoken(message: AssistantMessage, { layout }: Scene): Spoken {
  let { reasoning, content } = message
  if (reasoning === undefined && layout.inlineThink && content.includes('</think>')) {
    // What stands between two closing tags is lost in the template too.
    const before = content.slice(0, content.indexOf('</think>'))
    reasoning = trimNewlinesStart(trimNewlinesEnd(before).split('<think>').at(-1)!)
    content = trimNewlinesStart(content.split('</think>').at(-1)!)
  }
  const thought = layout.think === 'none' ? '' : (reasoning ?? '')
  return {
    reasoning: layout.think === 'reasoned' ? trimNewlines(thought) : pythonTrim(thought),
    content,
  }
}

function trimNewlinesEnd(text: string): string {
  return text.slice(0, text.length - (/\n*$/.exec(text)?.[0].length ?? 0))
}
