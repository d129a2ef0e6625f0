import {
  createPrompt,
  isRunnable,
  textOf,
  tokenChunk,
  type AssistantMessage,
  type Conversation,
  type Message,
  type ParsedReply,
  type Renderer,
  type ReplyContext,
  type ReplyDelta,
  type ReplySpan,
  type ToolCall,
  type Tokenizer,
} from '@tiltyard/core'

/** Ids from 256 on are markers; `pair` stands for the bytes of `ab`, which encoding never makes. */
export const mark = {
  system: 256,
  user: 257,
  assistant: 258,
  tool: 259,
  end: 260,
  callOpen: 261,
  callClose: 262,
  think: 263,
  thought: 264,
  pair: 265,
} as const

const decoder = new TextDecoder()

export function bytes(given: string): number[] {
  return [...new TextEncoder().encode(given)]
}

/** `‹…›` is reasoning, `⟦name {…}⟧` a call; the end token is added unless `ended` is false. */
export function reply(given: string, ended = true): number[] {
  const ids = Array.from(given).flatMap((character) => {
    const found = { '‹': mark.think, '›': mark.thought, '⟦': mark.callOpen, '⟧': mark.callClose }[
      character
    ]
    return found === undefined ? bytes(character) : [found]
  })
  return ended ? [...ids, mark.end] : ids
}

export interface ByteRendererOptions {
  /** Drop earlier reasoning at a new user turn, as Qwen3's template does. Default false. */
  readonly strips?: boolean
  /** Never go on from ids, so that each prompt is rendered whole. Default false. */
  readonly refuses?: boolean
}

/** A byte is a token. Streams as bytes come, has reasoning, and ids whose text encodes to other ids. */
export function byteRenderer({
  strips = false,
  refuses = false,
}: ByteRendererOptions = {}): Renderer {
  return {
    specVersion: 'renderer/1',
    name: 'byte',
    fingerprint: `byte ${strips} ${refuses}`,
    history: { extendsToolLoop: true, extendsUserTurn: !strips, breaks: '' },
    capabilities: { tools: true, images: false, reasoning: true },
    stop: { tokens: [mark.end], strings: [] },
    prompt({ messages, tools = [] }: Conversation) {
      const lastUser = messages.findLastIndex(({ role }) => role === 'user')
      const head =
        tools.length === 0 ? [] : [mark.system, ...bytes(JSON.stringify(tools)), mark.end]
      const body = messages.flatMap((message, index) =>
        render(message, !strips || index > lastUser),
      )
      return createPrompt([tokenChunk([...head, ...body, mark.assistant])])
    },
    extend(prompt, { ids }, { messages }) {
      if (refuses) return { refused: 'always renders whole' }
      if (strips && ids.includes(mark.think) && messages.some(({ role }) => role === 'user'))
        return { refused: 'reasoning is dropped after a user message' }
      const closing = ids.at(-1) === mark.end ? [] : [mark.end]
      const rest = messages.flatMap((message) => render(message, true))
      return createPrompt([tokenChunk([...ids, ...closing, ...rest, mark.assistant])], prompt)
    },
    parse,
    stream(context) {
      const ids: number[] = []
      let shown = 0
      let reasoning = 0
      const grown = (message: AssistantMessage): ReplyDelta[] => {
        const deltas: ReplyDelta[] = []
        const thought = message.reasoning ?? ''
        if (thought.length > reasoning)
          deltas.push({ type: 'reasoning', text: thought.slice(reasoning) })
        if (message.content.length > shown)
          deltas.push({ type: 'text', text: message.content.slice(shown) })
        reasoning = Math.max(reasoning, thought.length)
        shown = Math.max(shown, message.content.length)
        return deltas
      }
      return {
        push(more) {
          ids.push(...more)
          return grown(parse(whole(ids), { ...context, stop: 'length' }).message)
        },
        end(stop) {
          const parsed = parse(Int32Array.from(ids), { ...context, stop })
          return { deltas: grown(parsed.message), reply: parsed }
        },
      }
    },
    supervised: () => [],
  }
}

/** Without the bytes of an unfinished character at the end. */
function whole(ids: readonly number[]): Int32Array {
  let end = ids.length
  const tail = (to: number) =>
    decoder.decode(Uint8Array.from(ids.slice(Math.max(0, to - 4), to).filter((id) => id < 256)))
  while (end > 0 && ids.length - end < 4 && tail(end).endsWith('\uFFFD')) end -= 1
  return Int32Array.from(ids.slice(0, end))
}

function render(message: Message, withReasoning: boolean): number[] {
  if (message.role !== 'assistant')
    return [mark[message.role], ...bytes(textOf(message.content)), mark.end]
  const { content, reasoning, toolCalls = [] } = message
  const thought =
    reasoning === undefined || !withReasoning ? [] : [mark.think, ...bytes(reasoning), mark.thought]
  const calls = toolCalls.flatMap((call) => {
    const raw = call.rawArguments ?? (isRunnable(call) ? JSON.stringify(call.arguments) : '')
    return [mark.callOpen, ...bytes(`${call.name} ${raw}`), mark.callClose]
  })
  return [mark.assistant, ...thought, ...bytes(content), ...calls, mark.end]
}

export function text(ids: Iterable<number>): string {
  const flat = [...ids].flatMap((id) => (id === mark.pair ? bytes('ab') : id < 256 ? [id] : []))
  return decoder.decode(Uint8Array.from(flat))
}

function parse(ids: Int32Array, context: ReplyContext): ParsedReply {
  const all = [...ids]
  const ended = all.at(-1) === mark.end
  const body = ended ? all.slice(0, -1) : all
  const spans: ReplySpan[] = []
  const calls: ToolCall[] = []
  const malformed: { error: string; raw: string }[] = []
  let content = ''
  let reasoning: string | undefined
  for (let at = 0; at < body.length;) {
    const id = body[at]!
    const closer =
      id === mark.think ? mark.thought : id === mark.callOpen ? mark.callClose : undefined
    if (closer === undefined) {
      const next = body.findIndex(
        (other, index) => index > at && (other === mark.think || other === mark.callOpen),
      )
      const piece = text(body.slice(at, next === -1 ? undefined : next))
      content += piece
      if (piece !== '') spans.push({ kind: 'text', text: piece })
      at = next === -1 ? body.length : next
      continue
    }
    const close = body.indexOf(closer, at)
    const inner = text(body.slice(at + 1, close === -1 ? undefined : close))
    if (id === mark.think) {
      reasoning = (reasoning ?? '') + inner
      spans.push({ kind: 'reasoning', text: `‹${inner}${close === -1 ? '' : '›'}` })
    } else {
      spans.push({ kind: 'call', text: `⟦${inner}${close === -1 ? '' : '⟧'}` })
      const name = /^[a-z_]+/.exec(inner)?.[0]
      if (close === -1) malformed.push({ error: 'truncated', raw: `⟦${inner}` })
      else if (name === undefined) malformed.push({ error: 'missing_name', raw: `⟦${inner}⟧` })
      else calls.push(readCall(name, inner.slice(name.length).trim(), calls.length, context))
    }
    at = close === -1 ? body.length : close + 1
  }
  if (ended) spans.push({ kind: 'markup', text: '⟨end⟩' })
  return {
    message: {
      role: 'assistant',
      content,
      ...(reasoning === undefined ? {} : { reasoning }),
      ...(calls.length === 0 ? {} : { toolCalls: calls }),
    },
    termination: ended ? 'stop' : 'length',
    malformed,
    spans,
  }
}

/** Arguments that are declared as strings are strings, however they were written. */
function readCall(name: string, raw: string, index: number, context: ReplyContext): ToolCall {
  const id = context.callId?.(index) ?? `call_${index}`
  try {
    const value = JSON.parse(raw) as Record<string, never>
    return { id, name, arguments: value, rawArguments: raw }
  } catch {
    return { id, name, rawArguments: raw, error: 'no JSON' }
  }
}

export const byteTokenizer: Tokenizer = {
  specVersion: 'tokenizer/1',
  name: 'byte',
  fingerprint: 'byte',
  vocabularySize: 266,
  markers: new Map([['⟨end⟩', mark.end]]),
  encode: (given) => Int32Array.from(bytes(given)),
  decode: (ids) => text(Array.from(ids)),
  bytes: (id) => Uint8Array.from(id === mark.pair ? bytes('ab') : id < 256 ? [id] : []),
  stream() {
    const inner = new TextDecoder()
    return {
      push: (ids) =>
        inner.decode(Uint8Array.from(Array.from(ids).filter((id) => id < 256)), { stream: true }),
      end: () => inner.decode(),
    }
  },
}
