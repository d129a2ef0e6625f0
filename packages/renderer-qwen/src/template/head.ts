import { ConfigError, textOf, type Conversation, type SystemMessage } from '@tiltyard/core'
import { pythonTrim } from '@tiltyard/core/rendering'

import type { ReasoningEffort, Scene, Segments } from './scene.ts'
import { toolBlock } from './tools.ts'

const effortSentences: Readonly<Record<ReasoningEffort, string | undefined>> = {
  xhigh:
    'Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer.',
  medium: undefined,
  low: 'Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion without unnecessary elaboration.',
}

/** The system block: system text, tools and what else the layout puts there. Nothing when there is nothing to say. */
export function headSegments({ messages, tools = [] }: Conversation, scene: Scene): Segments {
  const { layout, write } = scene
  const first = messages[0]
  const given = first?.role === 'system' ? systemText(first, scene) : undefined
  const { defaultSystem } = layout
  const standIn =
    defaultSystem?.when === 'always' || tools.length > 0 ? defaultSystem?.text : undefined
  const system = given ?? standIn
  const effort =
    layout.reasoningEffort && scene.thinking ? effortSentences[scene.reasoningEffort] : undefined

  const parts: Segments[] = []
  if (effort !== undefined) parts.push([effort])
  if (tools.length === 0) {
    if (system !== undefined && system !== '') parts.push([system])
  } else if (layout.tools === 'json_first') {
    parts.push(toolBlock(tools, scene))
    if (system !== undefined && system !== '') parts.push([system])
  } else {
    // Here the blank line follows the system text even when that is empty.
    if (system !== undefined) parts.push([system])
    parts.push(toolBlock(tools, scene))
  }
  const emptyBlock = system !== undefined && layout.emptySystemBlock
  if (parts.length === 0 && !emptyBlock) return []
  const body = parts.flatMap((part, index) => (index === 0 ? part : ['\n\n', ...part]))
  return write`<|im_start|>system\n${body}<|im_end|>\n`
}

function systemText({ content }: SystemMessage, { layout }: Scene): string {
  if (typeof content !== 'string' && content.some(({ type }) => type === 'image')) {
    throw new ConfigError('conversation', [
      { at: 'messages.0', message: 'a system message holds no image' },
    ])
  }
  const text = textOf(content)
  return layout.trim === 'all' ? pythonTrim(text) : text
}
