import { createHash } from 'node:crypto'

import {
  ConfigError,
  createPrompt,
  tokenChunk,
  type Conversation,
  type HistoryBehaviour,
  type PromptChunk,
  type RenderedPrompt,
  type Renderer,
  type Tokenizer,
} from '@tiltyard/core'
import {
  continueFrom,
  encodeNaively,
  encodeSegments,
  findMarkers,
  templateWriter,
  type Segment,
} from '@tiltyard/core/rendering'

import { whyNever, whyNot } from './extension.ts'
import { qwenImageTokens } from './images.ts'
import type { Layout } from './layouts/layout.ts'
import { layouts } from './layouts/table.ts'
import { checkQwenOptions, type QwenRendererOptions } from './options.ts'
import type { ThinkStart } from './parse/reading.ts'
import { parseReply, replyStream } from './parse/stream.ts'
import { keepsHistory, supervisedExamples } from './supervised.ts'
import { conversationSegments, messageBlocks, replyHeader } from './template/conversation.ts'
import type { Scene } from './template/scene.ts'

/** Changes when the same options give other tokens or another reading than before. */
const REVISION = 1

/**
 * A renderer for Qwen's chat layouts.
 * @throws ConfigError for an option that the layout doesn't have, or a tokenizer that lacks its markers.
 */
export function qwenRenderer(options: QwenRendererOptions): Renderer {
  const { markers: mode = 'safe', history: keep = 'template' } = checkQwenOptions(options)
  const layout = layouts[options.layout]
  const tokenizer = withPlainTags(options.tokenizer, layout.plainTags)
  const scene = sceneOf(layout, tokenizer, options)
  const needed = { start: '<|im_start|>', end: '<|im_end|>', eos: '<|endoftext|>' }
  const markers = findMarkers(tokenizer, needed)
  const parser = {
    layout,
    start: thinkStart(scene),
    tokenizer,
    stop: markers.end,
    eos: markers.eos,
  }
  const extension = {
    scene,
    tokenizer,
    markers,
    thinkOpen: tokenizer.markers.get('<think>'),
    thinkClose: tokenizer.markers.get('</think>'),
  }
  const encode = (segments: readonly Segment[]) =>
    (mode === 'naive' ? encodeNaively : encodeSegments)(tokenizer, segments)

  return {
    specVersion: 'renderer/1',
    name: nameOf(scene),
    fingerprint: fingerprintOf(scene, options),
    history: historyOf(scene, keep),
    capabilities: {
      tools: true,
      images: layout.images,
      reasoning: layout.think !== 'none',
    },
    stop: { tokens: [markers.end.id, markers.eos.id], strings: [] },
    prompt: (conversation) => {
      const chunks = encode([...conversationSegments(conversation, scene), ...replyHeader(scene)])
      return hasHead(conversation) ? withHeadApart(chunks, markers.start.id) : createPrompt(chunks)
    },
    transcript: (conversation) => createPrompt(encode(conversationSegments(conversation, scene))),
    extend(prompt, reply, next) {
      const refused =
        whyNever(next, scene) ??
        (keep === 'keep' ? undefined : whyNot(prompt, reply, next, extension))
      if (refused !== undefined) return { refused }
      // Only layouts that number images need to know how many there were.
      const images = scene.addVisionId
        ? prompt.chunks().filter(({ type }) => type === 'image').length
        : 0
      const blocks = messageBlocks(next.messages, 0, -1, scene, { images })
      const added = ['\n', ...blocks, ...replyHeader(scene)]
      return continueFrom(prompt, reply, markers.end, encode(added))
    },
    parse: (ids, context) => parseReply(parser, ids, context),
    stream: (context) => replyStream(parser, context),
    supervised: (conversation, on) =>
      supervisedExamples(conversation, on, scene, encode, markers.end),
  }
}

/** The same tokenizer with some markers unknown: they are spelled as text. */
function withPlainTags(tokenizer: Tokenizer, tags: readonly string[]): Tokenizer {
  if (tags.length === 0) return tokenizer
  const markers = new Map([...tokenizer.markers].filter(([text]) => !tags.includes(text)))
  return { ...tokenizer, markers }
}

function sceneOf(layout: Layout, tokenizer: Tokenizer, options: QwenRendererOptions): Scene {
  const { thinking, preserveThinking, reasoningEffort, addVisionId = false } = options
  if (layout.thinking !== 'optional' && thinking === (layout.thinking === 'never')) {
    refuse('thinking', `${layout.name} ${layout.thinking} thinks; leave the option out`)
  }
  if (layout.preserveThinking === undefined && preserveThinking === true) {
    refuse('preserveThinking', `${layout.name} has no such option; qwen3_6 and qwen3_8 have`)
  }
  if (!layout.reasoningEffort && reasoningEffort !== undefined) {
    refuse('reasoningEffort', `${layout.name} has no such option; qwen3_8 has`)
  }
  return {
    layout,
    write: templateWriter(tokenizer),
    thinking: layout.thinking === 'optional' ? (thinking ?? true) : layout.thinking === 'always',
    preserveThinking: preserveThinking ?? layout.preserveThinking ?? false,
    reasoningEffort: reasoningEffort ?? 'xhigh',
    bareTools: options.tools === 'bare',
    addVisionId,
    imageTokens: options.imageTokens ?? qwenImageTokens,
  }
}

function refuse(at: string, message: string): never {
  throw new ConfigError('qwenRenderer', [{ at, message }])
}

function thinkStart({ layout, thinking }: Scene): ThinkStart {
  if (layout.thinking === 'never') return 'header'
  if (!thinking) return 'closed'
  return layout.opensThink ? 'open' : 'header'
}

function nameOf({ layout, thinking }: Scene): string {
  return layout.thinking === 'optional' && !thinking ? `${layout.name}_thinking_off` : layout.name
}

function fingerprintOf(scene: Scene, options: QwenRendererOptions): string {
  const { layout, write: _, imageTokens: __, ...settled } = scene
  const { tokenizer, history = 'template', markers = 'safe' } = options
  const identity = [
    REVISION,
    layout.name,
    layout.templateHash ?? '',
    settled,
    options.imageTokens === undefined,
    history,
    markers,
    tokenizer.fingerprint,
  ]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex')
}

function historyOf(scene: Scene, keep: 'template' | 'keep'): HistoryBehaviour {
  const { layout, thinking } = scene
  if (keepsHistory(scene)) return { extendsToolLoop: true, extendsUserTurn: true, breaks: '' }
  const kept = keep === 'keep' ? '; extend keeps it, off the template' : ''
  if (layout.think === 'always') {
    return {
      extendsToolLoop: true,
      extendsUserTurn: false,
      breaks: `think blocks leave the history when a user message follows${kept}`,
    }
  }
  return {
    extendsToolLoop: thinking,
    extendsUserTurn: false,
    breaks: thinking
      ? `reasoning leaves the history when a user message follows, an empty think block also when a tool result does${kept}`
      : `the closed think block of the prompt is not in the history${kept}`,
  }
}

function hasHead({ messages, tools = [] }: Conversation): boolean {
  return tools.length > 0 || messages[0]?.role === 'system'
}

/** System prompt and tools as a handle of their own: many prompts share them, and backends can read them once for all. */
function withHeadApart(chunks: readonly PromptChunk[], start: number): RenderedPrompt {
  const [first, ...rest] = chunks
  const end = first?.type === 'tokens' ? first.ids.indexOf(start, 1) : -1
  if (first?.type !== 'tokens' || end === -1) return createPrompt(chunks)
  const head = createPrompt([tokenChunk(first.ids.subarray(0, end))])
  return createPrompt([tokenChunk(first.ids.subarray(end)), ...rest], head)
}
