import {
  ConfigError,
  chunkLength,
  createPrompt,
  hasImages,
  isRunnable,
  textOf,
  tokenChunk,
  type AssistantMessage,
  type Conversation,
  type Message,
  type ParsedReply,
  type PromptChunk,
  type Renderer,
  type ReplyContext,
  type ReplyDelta,
  type ReplySpan,
  type ToolCall,
  type ToolSpec,
  type WeightedTokens,
  type MalformedCall,
  type TrainOn,
} from '@tiltyard/core'
import { printJson } from '@tiltyard/core/rendering'

/** Ids of the markers; every other id is the code point of its character. */
export const charMarkers = {
  system: 0x110000,
  user: 0x110001,
  assistant: 0x110002,
  tool: 0x110003,
  /** Ends a message, and a reply. */
  end: 0x110004,
  /** The model's end-of-text. */
  eos: 0x110005,
  callOpen: 0x110006,
  callClose: 0x110007,
} as const

/** Ids lie below this. */
export const CHAR_VOCABULARY = 0x110008

/** How markers are written in texts for people and scripts: `⟦` and `⟧` around a call. */
const shown = new Map<number, string>([
  [charMarkers.system, '⟨system⟩'],
  [charMarkers.user, '⟨user⟩'],
  [charMarkers.assistant, '⟨assistant⟩'],
  [charMarkers.tool, '⟨tool⟩'],
  [charMarkers.end, '⟨end⟩'],
  [charMarkers.eos, '⟨eos⟩'],
  [charMarkers.callOpen, '⟦'],
  [charMarkers.callClose, '⟧'],
])

/** Ids of plain text, one per character; nothing becomes a marker, and half a surrogate pair becomes U+FFFD. */
export function charIds(text: string): Int32Array {
  const ids = new Int32Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; length += 1) {
    const point = text.codePointAt(at)!
    ids[length] = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point
    at += point > 0xffff ? 2 : 1
  }
  return ids.subarray(0, length)
}

/** Ids of a reply: `⟦name {"json": 1}⟧` is a call, and the reply ends with the stop token unless `ended` is false. */
export function charReply(text: string, ended = true): Int32Array {
  const ids = Int32Array.from(text, (character) => {
    if (character === '⟦') return charMarkers.callOpen
    if (character === '⟧') return charMarkers.callClose
    return character.codePointAt(0)!
  })
  return ended ? Int32Array.of(...ids, charMarkers.end) : ids
}

/** Text of ids, markers spelled out. */
export function charText(ids: Iterable<number>): string {
  let text = ''
  for (const id of ids) text += shown.get(id) ?? String.fromCodePoint(id)
  return text
}

export interface CharRendererOptions {
  /** Positions of an image. Default: images are refused. */
  readonly imageTokens?: number
  /**
   * Do as templates that strip reasoning: of replies before the last user message only what follows their last `|` is shown, and
   * no prompt goes on with a user message. Default false.
   */
  readonly rewritesHistory?: boolean
  /** Put in front of the system block. Default nothing. */
  readonly preamble?: string
  /** Default true. */
  readonly tools?: boolean
}

/**
 * The simplest renderer that keeps every promise: one character is one token, messages stand between markers, calls are
 * `⟦name {"json": 1}⟧`. Sampling, parsing and training can be read and written by hand.
 */
export function charRenderer(options: CharRendererOptions = {}): Renderer {
  const { imageTokens, rewritesHistory = false, preamble = '', tools = true } = options
  const render = (message: Message) => messageChunks(message, imageTokens)

  return {
    specVersion: 'renderer/1',
    name: 'char',
    fingerprint: `char:${JSON.stringify({ imageTokens, rewritesHistory, preamble, tools })}`,
    history: {
      extendsToolLoop: true,
      extendsUserTurn: !rewritesHistory,
      breaks: rewritesHistory ? 'history is rewritten after a user message' : '',
    },
    capabilities: { tools, images: imageTokens !== undefined, reasoning: false },
    stop: { tokens: [charMarkers.end, charMarkers.eos], strings: [] },

    prompt(conversation) {
      return createPrompt([
        ...headChunks(conversation, preamble),
        ...(rewritesHistory ? rewritten(conversation.messages) : conversation.messages).flatMap(
          render,
        ),
        tokenChunk([charMarkers.assistant]),
      ])
    },

    extend(prompt, reply, next) {
      if (rewritesHistory && next.messages.some(({ role }) => role === 'user'))
        return { refused: 'history is rewritten after a user message' }
      const ended = isStop(reply.ids.at(-1))
      return createPrompt(
        [
          tokenChunk(reply.ids),
          tokenChunk(ended ? [] : [charMarkers.end]),
          ...next.messages.flatMap(render),
          tokenChunk([charMarkers.assistant]),
        ],
        prompt,
      )
    },

    parse,

    stream(context) {
      const pieces: number[] = []
      let sent = ''
      let inCall = false
      // Only the last stop token is no text.
      let stop = ''
      return {
        push(ids) {
          let text = ''
          for (const id of ids) {
            pieces.push(id)
            text += stop
            stop = ''
            if (inCall) inCall = id !== charMarkers.callClose
            else if (id === charMarkers.callOpen) inCall = true
            else if (isStop(id)) stop = charText([id])
            else text += charText([id])
          }
          sent += text
          return text === '' ? [] : [{ type: 'text', text }]
        },
        end(reason) {
          const reply = parse(Int32Array.from(pieces), { ...context, stop: reason })
          const { message } = reply
          const rest = { ...message, content: message.content.slice(sent.length) }
          return { deltas: deltasOf(rest), reply }
        },
      }
    },

    supervised: (conversation, on) => supervised(conversation, on, preamble, render),
  }
}

function rewritten(messages: readonly Message[]): readonly Message[] {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  return messages.map((message, index) =>
    message.role === 'assistant' && index < lastUser
      ? { ...message, content: message.content.slice(message.content.lastIndexOf('|') + 1) }
      : message,
  )
}

function headChunks({ tools = [] }: Conversation, preamble: string): PromptChunk[] {
  const text = preamble + tools.map((tool) => `${JSON.stringify(tool)}\n`).join('')
  if (text === '') return []
  return [
    tokenChunk([charMarkers.system]),
    tokenChunk(charIds(text)),
    tokenChunk([charMarkers.end]),
  ]
}

function messageChunks(message: Message, imageTokens: number | undefined): PromptChunk[] {
  if (message.role === 'assistant')
    return [tokenChunk([charMarkers.assistant]), tokenChunk(assistantIds(message))]
  const open = tokenChunk([charMarkers[message.role]])
  const close = tokenChunk([charMarkers.end])
  if (!hasImages([message])) return [open, tokenChunk(charIds(textOf(message.content))), close]
  if (imageTokens === undefined)
    throw new ConfigError('char renderer', [
      { at: 'messages', message: 'there is an image; give imageTokens' },
    ])
  const parts = typeof message.content === 'string' ? [] : message.content
  const chunks = parts.map((part): PromptChunk =>
    part.type === 'text'
      ? tokenChunk(charIds(part.text))
      : { type: 'image', format: part.format, data: part.data, tokens: imageTokens },
  )
  return [open, ...chunks, close]
}

function assistantIds({ content, toolCalls = [] }: AssistantMessage): Int32Array {
  const ids = [...charIds(content)]
  for (const call of toolCalls) {
    const text = `${call.name} ${rawOf(call)}`
    ids.push(charMarkers.callOpen, ...charIds(text), charMarkers.callClose)
  }
  ids.push(charMarkers.end)
  return Int32Array.from(ids)
}

/** As the model wrote them, else as templates print JSON: with a space after each comma and colon. */
function rawOf(call: ToolCall): string {
  return call.rawArguments ?? (isRunnable(call) ? printJson(call.arguments) : '')
}

function isStop(id: number | undefined): boolean {
  return id === charMarkers.end || id === charMarkers.eos
}

function parse(ids: Int32Array, context: ReplyContext): ParsedReply {
  const last = ids.at(-1)
  const body = isStop(last) ? ids.subarray(0, -1) : ids
  const spans: ReplySpan[] = []
  const calls: ToolCall[] = []
  const malformed: MalformedCall[] = []
  let content = ''
  let at = 0
  while (at < body.length) {
    const open = body.indexOf(charMarkers.callOpen, at)
    const text = charText(body.subarray(at, open === -1 ? undefined : open))
    if (text !== '') spans.push({ kind: 'text', text })
    content += text
    if (open === -1) break
    const close = body.indexOf(charMarkers.callClose, open)
    const end = close === -1 ? body.length : close + 1
    spans.push({ kind: 'call', text: charText(body.subarray(open, end)) })
    const inner = charText(body.subarray(open + 1, close === -1 ? undefined : close))
    const name = /^[^\s{]+/.exec(inner)?.[0]
    if (close === -1) malformed.push({ error: 'truncated', raw: inner })
    else if (name === undefined) malformed.push({ error: 'missing_name', raw: inner })
    else calls.push(readCall(name, inner.slice(name.length).trim(), context, calls.length))
    at = end
  }
  if (isStop(last)) spans.push({ kind: 'markup', text: shown.get(last!)! })
  return {
    message: { role: 'assistant', content, ...(calls.length > 0 ? { toolCalls: calls } : {}) },
    termination: last === charMarkers.end ? 'stop' : last === charMarkers.eos ? 'eos' : 'length',
    malformed,
    spans,
  }
}

function readCall(name: string, raw: string, context: ReplyContext, index: number): ToolCall {
  const id = context.callId?.(index) ?? `call_${index}`
  try {
    const value: unknown = JSON.parse(raw)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { id, name, arguments: value as Record<string, never>, rawArguments: raw }
    return { id, name, rawArguments: raw, error: 'the arguments are no JSON object' }
  } catch {
    return { id, name, rawArguments: raw, error: 'the arguments are no JSON' }
  }
}

function deltasOf({ content, toolCalls = [] }: AssistantMessage): readonly ReplyDelta[] {
  const deltas: ReplyDelta[] = content === '' ? [] : [{ type: 'text', text: content }]
  for (const [index, call] of toolCalls.entries()) {
    const text = call.rawArguments ?? ''
    deltas.push({ type: 'call', index, id: call.id, name: call.name })
    deltas.push({ type: 'arguments', index, text })
  }
  return deltas
}

function supervised(
  conversation: Conversation,
  on: TrainOn,
  preamble: string,
  render: (message: Message) => PromptChunk[],
): readonly WeightedTokens[] {
  const { messages } = conversation
  const lastUser = messages.findLastIndex(({ role }) => role === 'user')
  const isTrained = (index: number) => {
    if (messages[index]!.role !== 'assistant') return false
    if (on === 'last_assistant_message') return index === messages.length - 1
    return on === 'all_assistant_messages' || index > lastUser
  }
  const chunks: PromptChunk[] = []
  const weights: number[] = []
  const add = (chunk: PromptChunk, weight: number) => {
    chunks.push(chunk)
    for (let count = chunkLength(chunk); count > 0; count -= 1) weights.push(weight)
  }
  for (const chunk of headChunks(conversation, preamble)) add(chunk, 0)
  for (const [index, message] of messages.entries()) {
    for (const [part, chunk] of render(message).entries())
      add(chunk, isTrained(index) && part > 0 ? 1 : 0)
  }
  return [{ chunks, weights: Float32Array.from(weights) }]
}

/** Tools by name, for scripts. Parameters are open. */
export function charTools(...names: readonly string[]): readonly ToolSpec[] {
  return names.map((name) => ({ name, parameters: { type: 'object' } }))
}
