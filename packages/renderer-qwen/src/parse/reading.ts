import type {
  MalformedCall,
  ReplySpan,
  SpanKind,
  Termination,
  ToolCall,
  ToolSpec,
} from '@tiltyard/core'

import { readBareFunction, readBlock, readFunctionBlock, type Block } from './block.ts'
import {
  CALL_CLOSE,
  CALL_OPEN,
  earliest,
  FUNCTION_OPEN,
  settledLength,
  skipSpace,
  tagAt,
  THINK_CLOSE,
  THINK_OPEN,
} from './tags.ts'

/** How the prompt ended: in an opened think block, after a closed one, or just at the header. */
export type ThinkStart = 'open' | 'closed' | 'header'

export interface ReadingOptions {
  readonly calls: 'json' | 'xml'
  readonly start: ThinkStart
  /** The layout has reasoning, so that a lone `</think>` ends some. */
  readonly reasons: boolean
  readonly tools: readonly ToolSpec[]
  readonly callId: (index: number) => string
}

/** A reply as far as it is read. Everything in it stands, whatever text follows. */
export interface Reading {
  readonly spans: readonly ReplySpan[]
  /** Raw text of the think block, of what is said before the first call, and of what is said after it. */
  readonly thought: string
  readonly said: string
  readonly after: string
  readonly thinkBlock: boolean
  /** No reasoning follows. */
  readonly thinkingDone: boolean
  /** A call block was read, well-formed or not. */
  readonly called: boolean
  readonly calls: readonly ToolCall[]
  readonly malformed: readonly MalformedCall[]
}

/**
 * Reads a reply piece by piece. Every decision waits until no later text can change it, so the pieces don't matter: a reply read
 * at once and one read character by character come out the same.
 */
export interface ReplyReader {
  readonly reading: Reading
  /** What was thought and said since it was last asked for. */
  fresh(): { readonly thought: string; readonly said: string }
  push(text: string): void
  /** No text follows. */
  finish(termination: Termination): void
}

/** `in_block`: after a function whose `<tool_call>` isn't closed. `after_bare`: after a function that had none. */
type Phase = 'start' | 'thinking' | 'saying' | 'in_block' | 'after_bare'

export function replyReader(options: ReadingOptions): ReplyReader {
  const { callId, calls: form, reasons, start, tools } = options
  const spans: { kind: SpanKind; text: string }[] = []
  const calls: ToolCall[] = []
  const malformed: MalformedCall[] = []
  const texts = { thought: '', said: '', after: '' }
  let fresh = { thought: '', said: '' }
  let phase: Phase = start === 'open' ? 'thinking' : 'start'
  let thinkBlock = start === 'open'
  let called = false
  /** Text not yet read. */
  let buffer = ''
  /** The last character that was read; empty before the first. */
  let before = ''
  let end: Termination | undefined
  /** The buffer begins with a block that isn't whole. Only a tag, so only text with a `>`, can make it so. */
  let insideBlock = false

  /** Moves text from the buffer to a span: the last one, when that is of the same kind and nothing new begins. */
  const take = (length: number, kind: SpanKind, begins = false) => {
    if (length === 0) return ''
    const text = buffer.slice(0, length)
    buffer = buffer.slice(length)
    before = text.at(-1)!
    const last = spans.at(-1)
    if (last?.kind === kind && !begins) last.text += text
    else spans.push({ kind, text })
    return text
  }
  const think = (length: number) => {
    const text = take(length, 'reasoning')
    texts.thought += text
    fresh.thought += text
  }
  const say = (length: number) => {
    const text = take(length, 'text')
    if (called) {
      texts.after += text
    } else {
      texts.said += text
      fresh.said += text
    }
  }
  const go = (next: Phase) => {
    phase = next
    return true
  }
  const wait = ({ inside }: { readonly inside: boolean }) => {
    insideBlock = inside
    return false
  }

  const context = () => ({ calls: form, tools, final: end !== undefined, cut: end === 'length' })

  const accept = (block: Exclude<Block, { kind: 'prose' | 'more' }>, next: Phase) => {
    called = true
    const raw = take(block.end, 'call', true)
    if (block.kind === 'call') calls.push({ id: callId(calls.length), ...block.call })
    else malformed.push({ error: block.error, raw })
    return go(next)
  }

  /** Where the next tag that matters stands; a bare function matters at the start of a line. */
  const nextTag = (from: number) => {
    const wanted = [CALL_OPEN, THINK_CLOSE, ...(form === 'xml' ? [FUNCTION_OPEN] : [])]
    for (let at = earliest(buffer, from, wanted); at !== -1;) {
      const previous = at === 0 ? before : buffer[at - 1]!
      const bare = buffer.startsWith(FUNCTION_OPEN, at)
      if (!bare || previous === '\n' || previous === '') return at
      at = earliest(buffer, at + 1, wanted)
    }
    return -1
  }

  /** The first call drafted in a think block that was never closed, and that is complete. */
  const completeCall = () => {
    for (let at = buffer.indexOf(CALL_OPEN); at !== -1; at = buffer.indexOf(CALL_OPEN, at + 1)) {
      const block = readBlock(buffer, at, context())
      if (block.kind === 'call' && 'arguments' in block.call) return at
    }
    return undefined
  }

  /** Each step reads something and returns true, or waits for more text. */
  const steps: Readonly<Record<Phase, () => boolean>> = {
    start() {
      const at = skipSpace(buffer, 0)
      if (at === buffer.length && end === undefined) return false
      const tag = tagAt(buffer, at, [THINK_OPEN], end !== undefined)
      if (tag === 'more') return false
      if (tag === THINK_OPEN) {
        take(at + THINK_OPEN.length, 'markup')
        thinkBlock = true
        return go('thinking')
      }
      if (start === 'closed' || !reasons) return go('saying')
      const first = earliest(buffer, 0, [THINK_CLOSE, CALL_OPEN])
      if (first === -1 && end === undefined) return false
      if (first === -1 || !buffer.startsWith(THINK_CLOSE, first)) return go('saying')
      thinkBlock = true
      return go('thinking')
    },

    thinking() {
      if (texts.thought === '') {
        const at = skipSpace(buffer, 0)
        const tag = tagAt(buffer, at, [THINK_OPEN], end !== undefined)
        if (tag === 'more') return false
        if (tag === THINK_OPEN) {
          take(at + THINK_OPEN.length, 'markup')
          return true
        }
      }
      const close = buffer.indexOf(THINK_CLOSE)
      if (close !== -1) {
        think(close)
        take(THINK_CLOSE.length, 'markup')
        return go('saying')
      }
      if (end === undefined) {
        // A call drafted here is reasoning if the block is closed later.
        const draft = buffer.indexOf(CALL_OPEN)
        think(draft === -1 ? settledLength(buffer, [THINK_CLOSE, CALL_OPEN]) : draft)
        return false
      }
      const call = end === 'length' ? undefined : completeCall()
      think(call ?? buffer.length)
      return go('saying')
    },

    saying() {
      for (let at = nextTag(0); at !== -1; at = nextTag(at + 1)) {
        if (buffer.startsWith(THINK_CLOSE, at)) {
          if (!thinkBlock && start !== 'closed') continue
          say(at)
          take(THINK_CLOSE.length, 'markup')
          return true
        }
        const bare = buffer.startsWith(FUNCTION_OPEN, at)
        const block = (bare ? readBareFunction : readBlock)(buffer, at, context())
        if (block.kind === 'prose') continue
        say(at)
        if (block.kind === 'more') return wait(block)
        const open = block.kind === 'call' && block.open
        return accept(
          { ...block, end: block.end - at },
          open ? 'in_block' : bare ? 'after_bare' : 'saying',
        )
      }
      const held = [CALL_OPEN, THINK_CLOSE, FUNCTION_OPEN]
      say(end === undefined ? settledLength(buffer, held) : buffer.length)
      return false
    },

    // Between a function and the end of its block nothing counts but another function.
    in_block() {
      const at = earliest(buffer, 0, [CALL_CLOSE, CALL_OPEN, FUNCTION_OPEN])
      if (at === -1) return end !== undefined && go('saying')
      if (buffer.startsWith(CALL_CLOSE, at)) {
        take(at + CALL_CLOSE.length, 'call')
        return go('saying')
      }
      take(at, 'call')
      if (!buffer.startsWith(FUNCTION_OPEN)) return go('saying')
      const block = readFunctionBlock(buffer, 0, context(), [CALL_CLOSE], true)
      if (block.kind === 'more') return wait(block)
      return accept(block, block.kind === 'call' && block.open ? 'in_block' : 'saying')
    },

    after_bare() {
      const at = skipSpace(buffer, 0)
      const tag = at === buffer.length ? 'more' : tagAt(buffer, at, [CALL_CLOSE], end !== undefined)
      if (tag === 'more' && end === undefined) return false
      if (tag === CALL_CLOSE) take(at + CALL_CLOSE.length, 'call')
      return go('saying')
    },
  }

  const run = () => {
    while (steps[phase]());
  }

  return {
    get reading() {
      const thinkingDone = phase !== 'start' && phase !== 'thinking'
      return { ...texts, spans, thinkBlock, thinkingDone, called, calls, malformed }
    },
    fresh() {
      const given = fresh
      fresh = { thought: '', said: '' }
      return given
    },
    push(text) {
      buffer += text
      if (insideBlock && !text.includes('>')) return
      insideBlock = false
      run()
    },
    finish(termination) {
      end = termination
      run()
    },
  }
}
