import { ConfigError, isRunnable, textOf, type Message, type ToolSpec } from '@tiltyard/core'
import {
  isJsonObjectText,
  printJson,
  pythonTrim,
  type Segment,
  type TemplateWriter,
} from '@tiltyard/core/rendering'

export interface LlamaLayout {
  readonly write: TemplateWriter
  /** Of the preamble, such as `15 Jan 2026`. */
  readonly date: string
  /** Declare tools in the first user message, as the template does, or in the system message. */
  readonly toolsInUserMessage: boolean
}

/** The system block and the tools; `rest` are the messages that follow. */
export function head(
  messages: readonly Message[],
  tools: readonly ToolSpec[],
  { write, date, toolsInUserMessage }: LlamaLayout,
): { readonly segments: readonly Segment[]; readonly rest: readonly Message[] } {
  const [first, ...others] = messages
  const system = first?.role === 'system' ? pythonTrim(plain(first)) : ''
  let rest: readonly Message[] = first?.role === 'system' ? others : messages
  const environment = tools.length > 0 ? 'Environment: ipython\n' : ''
  const declared = tools.map((tool) => `${declaration(tool)}\n\n`).join('')
  const inSystem = tools.length > 0 && !toolsInUserMessage
  const block = write`<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n${environment}Cutting Knowledge Date: December 2023\nToday Date: ${date}\n\n${
    inSystem
      ? `You have access to the following functions. To call a function, please respond with JSON for a function call.${form}${declared}`
      : ''
  }${system}<|eot_id|>`
  if (tools.length === 0 || inSystem) return { segments: block, rest }

  const [question, ...following] = rest
  if (question?.role !== 'user') {
    throw new ConfigError('conversation', [
      { at: 'messages', message: 'tools are declared in the first user message; there is none' },
    ])
  }
  rest = following
  const asked = write`<|start_header_id|>user<|end_header_id|>\n\nGiven the following functions, please respond with a JSON for a function call with its proper arguments that best answers the given prompt.\n\n${form}${declared}${pythonTrim(plain(question))}<|eot_id|>`
  return { segments: [...block, ...asked], rest }
}

const form =
  'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.Do not use variables.\n\n'

export function messageBlock(message: Message, layout: LlamaLayout): readonly Segment[] {
  const { write } = layout
  if (message.role === 'assistant') {
    return write`<|start_header_id|>assistant<|end_header_id|>\n\n${replyText(message)}<|eot_id|>`
  }
  if (message.role === 'tool') {
    // The template prints results as JSON, plain text too.
    return write`<|start_header_id|>ipython<|end_header_id|>\n\n${printJson(plain(message))}<|eot_id|>`
  }
  return write`<|start_header_id|>${message.role}<|end_header_id|>\n\n${pythonTrim(plain(message))}<|eot_id|>`
}

export function replyHeader({ write }: LlamaLayout): readonly Segment[] {
  return write`<|start_header_id|>assistant<|end_header_id|>\n\n`
}

/** What the model would sample for a message, its end apart. */
export function replyText({ content, toolCalls = [] }: Message & { role: 'assistant' }): string {
  const [call, ...others] = toolCalls
  if (call === undefined) return pythonTrim(content)
  if (others.length > 0) {
    throw new ConfigError('conversation', [
      { at: 'messages', message: 'Llama 3 calls one tool a turn; a reply has more' },
    ])
  }
  const written = isJsonObjectText(call.rawArguments) || !isRunnable(call)
  const args = written ? call.rawArguments : printJson(call.arguments)
  return `{"name": "${call.name}", "parameters": ${args}}`
}

function declaration({ name, description, parameters, ...others }: ToolSpec): string {
  const described = description === undefined ? {} : { description }
  const tool = { type: 'function', function: { name, ...described, parameters, ...others } }
  return JSON.stringify(tool, undefined, 4)
}

function plain({ content }: Message): string {
  if (typeof content !== 'string' && content.some(({ type }) => type === 'image')) {
    throw new ConfigError('conversation', [
      { at: 'messages', message: 'holds an image, for which this layout has no place' },
    ])
  }
  return textOf(content)
}
