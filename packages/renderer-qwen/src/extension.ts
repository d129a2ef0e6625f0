import type { NextInput, RenderedPrompt, Reply, Tokenizer } from '@tiltyard/core'
import type { Marker } from '@tiltyard/core/rendering'

import { isQuery } from './template/query.ts'
import type { Scene } from './template/scene.ts'

export interface ExtensionContext {
  readonly scene: Scene
  readonly tokenizer: Tokenizer
  readonly markers: { readonly start: Marker; readonly end: Marker }
  /** Absent in vocabularies of layouts without reasoning. */
  readonly thinkOpen: number | undefined
  readonly thinkClose: number | undefined
}

const queryDrops = 'the template takes think blocks out of the history when a user message follows'
const emptyDrops = 'the template takes an empty think block out of the history'

/**
 * Why the template's own history would not begin with the prompt and the reply: because it drops a think block there. How the
 * model spaced its calls, or which of several spellings of a value it chose, is no reason: those tokens stand as they were sampled.
 * Undefined when nothing is dropped.
 */
export function whyNot(
  prompt: RenderedPrompt,
  reply: Reply,
  next: NextInput,
  context: ExtensionContext,
): string | undefined {
  const { scene } = context
  const { layout, thinking } = scene
  if (layout.think === 'none' || scene.preserveThinking) return undefined
  const asks = next.messages.some((message) => isQuery(message, layout))
  if (layout.think === 'always') return asks ? queryDrops : undefined
  if (!thinking) return 'the closed think block of the prompt is not in the history of the template'
  if (layout.opensThink && asks) return queryDrops
  const block = thinkBlock(reply.ids, context)
  if (block === 'empty') return emptyDrops
  if (!asks) return undefined
  return block === 'reasoned' || reasonedSinceQuery(prompt, context) ? queryDrops : undefined
}

/** Why these messages can't follow a reply at all. */
export function whyNever(next: NextInput, { layout }: Scene): string | undefined {
  const roles = new Set<string>(next.messages.map(({ role }) => role))
  if (roles.has('assistant')) return 'an assistant message follows; replies are sampled, not given'
  return roles.has('system') && layout.laterSystem === 'refused'
    ? `${layout.name} takes a system message at the beginning only`
    : undefined
}

/** What think block a reply has. Where the prompt opened it, the reply only closes it. */
function thinkBlock(ids: Int32Array, context: ExtensionContext): 'none' | 'empty' | 'reasoned' {
  const { scene, tokenizer, thinkOpen, thinkClose } = context
  const open = ids.findIndex((id) => id === thinkOpen)
  if (open === -1 && !scene.layout.opensThink) return 'none'
  const close = ids.findIndex((id, index) => index > open && id === thinkClose)
  const inside = ids.subarray(open + 1, close === -1 ? ids.length : close)
  return tokenizer.decode(inside).trim() === '' ? 'empty' : 'reasoned'
}

/** Whether an assistant turn after the prompt's last query has a think block. Reads ids alone, so that any handle will do. */
function reasonedSinceQuery(prompt: RenderedPrompt, context: ExtensionContext): boolean {
  const { scene, tokenizer, markers, thinkOpen } = context
  const ids = prompt.chunks().flatMap((chunk) => (chunk.type === 'tokens' ? [...chunk.ids] : [-1]))
  let reasoned = false
  let end = ids.length
  for (let at = ids.lastIndexOf(markers.start.id); at !== -1;) {
    const block = ids.slice(at + 1, end)
    const text = tokenizer.decode(block)
    if (text.startsWith('user\n')) {
      const content = text.slice('user\n'.length).replace(/<\|im_end\|>\n$/, '')
      if (isQuery({ role: 'user', content }, scene.layout)) return reasoned
    } else if (text.startsWith('assistant\n')) {
      reasoned ||= block.includes(thinkOpen ?? -1)
    }
    end = at
    at = at === 0 ? -1 : ids.lastIndexOf(markers.start.id, at - 1)
  }
  return reasoned
}
