import type {
  MalformedCall,
  ParsedReply,
  ReplyContext,
  ReplyDelta,
  ReplySpan,
  ReplyStream,
  Termination,
  Tokenizer,
  ToolCall,
} from '@tiltyard/core'
import {
  argumentsText,
  isJsonObject,
  parseExactJson,
  printJson,
  pythonTrim,
  pythonTrimStart,
  splitReply,
  type Marker,
} from '@tiltyard/core/rendering'

export interface Endings {
  readonly stop: Marker
  readonly eos: Marker
}

/** A reply as it comes in. Text that begins with a brace may be a call, so it waits for the end; other text is given at once. */
export function llamaStream(
  tokenizer: Tokenizer,
  endings: Endings,
  context: ReplyContext,
): ReplyStream {
  const decoder = tokenizer.stream()
  const rest = tokenizer.stream()
  let text = ''
  let ended: Termination | undefined
  let afterwards = ''
  let given = 0

  const show = (whole: string): readonly ReplyDelta[] => {
    const fresh = whole.slice(given)
    given += fresh.length
    return fresh === '' ? [] : [{ type: 'text', text: fresh }]
  }

  return {
    push(ids) {
      if (ended !== undefined) {
        afterwards += rest.push(ids)
        return []
      }
      const reply = splitReply(ids, endings)
      text += decoder.push(reply.ids)
      if (reply.termination !== 'length') {
        ended = reply.termination
        afterwards += rest.push(reply.rest)
      }
      return mayCall(text) ? [] : show(pythonTrim(text))
    },
    end(stop) {
      text += decoder.end()
      afterwards += rest.end()
      const termination = ended ?? stop
      const reply = read(text, termination, afterwards, context)
      const calls = (reply.message.toolCalls ?? []).flatMap(
        (call, index): readonly ReplyDelta[] => [
          { type: 'call', index, id: call.id, name: call.name },
          { type: 'arguments', index, text: argumentsText(call) },
        ],
      )
      return { deltas: [...show(reply.message.content), ...calls], reply }
    },
  }
}

function mayCall(text: string): boolean {
  return /^[{]?$/.test(pythonTrimStart(text).slice(0, 1))
}

function read(
  text: string,
  termination: Termination,
  afterwards: string,
  context: ReplyContext,
): ParsedReply {
  const { kind, calls = [], malformed = [] } = meaning(text, termination, context)
  const spans: ReplySpan[] = []
  if (text !== '') spans.push({ kind, text })
  if (afterwards !== '') spans.push({ kind: 'markup', text: afterwards })
  return {
    message: {
      role: 'assistant',
      content: kind === 'call' ? '' : pythonTrim(text),
      ...(calls.length === 0 ? {} : { toolCalls: calls }),
    },
    termination,
    malformed,
    spans,
  }
}

interface Meaning {
  readonly kind: 'text' | 'call'
  readonly calls?: readonly ToolCall[]
  readonly malformed?: readonly MalformedCall[]
}

/** Nothing but its shape tells a call from text: an object with the name of a declared tool, and `parameters`. */
function meaning(text: string, termination: Termination, { tools, callId }: ReplyContext): Meaning {
  const call = /^\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"parameters"\s*:\s*/.exec(text)
  const name = call?.[1]
  if (call === null || name === undefined || !tools.some((tool) => tool.name === name)) {
    return { kind: 'text' }
  }
  const id = callId?.(0) ?? 'call_0'
  const raw = text.slice(call[0].length).trimEnd()
  try {
    const value = parseExactJson(text)
    const args = isJsonObject(value) ? value['parameters'] : undefined
    if (!isJsonObject(args)) {
      const error = 'arguments_not_object: the parameters must be a JSON object'
      return { kind: 'call', calls: [{ id, name, rawArguments: raw.slice(0, -1), error }] }
    }
    const source = raw.slice(0, -1).trimEnd()
    const rawArguments = isSource(source) ? source : printJson(args)
    return { kind: 'call', calls: [{ id, name, arguments: args, rawArguments }] }
  } catch {
    if (termination === 'length')
      return { kind: 'call', malformed: [{ error: 'truncated', raw: text }] }
    const error = 'invalid_json: the call is no valid JSON'
    return { kind: 'call', calls: [{ id, name, rawArguments: raw, error }] }
  }
}

function isSource(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
