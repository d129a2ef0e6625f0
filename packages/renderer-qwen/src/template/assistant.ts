import type { AssistantMessage } from '@tiltyard/core'
import { pythonTrim, trimNewlinesStart } from '@tiltyard/core/rendering'

import { callSegments } from './calls.ts'
import { spoken } from './reasoning.ts'
import type { Scene, Segments } from './scene.ts'

/** Where a message stands, as far as its think block depends on it. */
export interface Place {
  readonly afterQuery: boolean
  readonly last: boolean
}

/** An assistant message after its header: think block where the layout writes one, content, calls. */
export function assistantBody(message: AssistantMessage, place: Place, scene: Scene): Segments {
  const { layout, write } = scene
  const { reasoning, content } = spoken(message, scene)
  if (!hasBlock(reasoning, place, scene)) return saidSegments(message, content, scene)
  const said = layout.think === 'reasoned' ? trimNewlinesStart(content) : content
  return write`<think>\n${reasoning}\n</think>\n\n${saidSegments(message, said, scene)}`
}

/** What the model would sample for a message after the prompt before it. */
export function completionBody(message: AssistantMessage, scene: Scene): Segments {
  const { layout, write, thinking } = scene
  const { reasoning, content } = spoken(message, scene)
  if (!thinking) return saidSegments(message, content, scene)
  const said = layout.think === 'reasoned' ? trimNewlinesStart(content) : content
  const rest = write`${reasoning}\n</think>\n\n${saidSegments(message, said, scene)}`
  return layout.opensThink ? rest : write`<think>\n${rest}`
}

function hasBlock(reasoning: string, place: Place, scene: Scene): boolean {
  const { think } = scene.layout
  if (think === 'none') return false
  if (think === 'reasoned') return place.afterQuery && (place.last || reasoning !== '')
  return place.afterQuery || scene.preserveThinking
}

/** Content and calls with what stands between them. */
function saidSegments(message: AssistantMessage, content: string, scene: Scene): Segments {
  const { trim, calls: form } = scene.layout
  const calls = message.toolCalls ?? []
  const text =
    trim === 'all' || (trim === 'beside_calls' && calls.length > 0) ? pythonTrim(content) : content
  if (calls.length === 0) return [text]
  const gap = text === '' ? '' : form === 'xml' ? '\n\n' : '\n'
  return [text, gap, ...callSegments(calls, scene)]
}
