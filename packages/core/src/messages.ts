import type { JsonObject, JsonSchema } from './json.ts'

export interface TextPart {
  readonly type: 'text'
  readonly text: string
}

/** An image by its bytes. How many tokens it takes is the renderer's to say. */
export interface ImagePart {
  readonly type: 'image'
  readonly format: 'png' | 'jpeg'
  readonly data: Uint8Array
  /** Pixels. */
  readonly width: number
  readonly height: number
}

export type Content = string | readonly (TextPart | ImagePart)[]

export interface SystemMessage {
  readonly role: 'system'
  readonly content: Content
}

export interface UserMessage {
  readonly role: 'user'
  readonly content: Content
}

/** A call whose arguments are a JSON object, typed by the tool's schema where the layout leaves types open. */
export interface RunnableCall {
  /** Unique in the episode. Results go back under it. */
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  /** The arguments as the model wrote them; used when the call is rendered again, so that nothing is reformatted. */
  readonly rawArguments?: string
}

/** A call with a name whose arguments are no JSON object. It is not run; the environment answers with an error under its id. */
export interface InvalidCall {
  readonly id: string
  readonly name: string
  readonly rawArguments: string
  /** What is wrong with the arguments, for the model to read. */
  readonly error: string
}

export type ToolCall = RunnableCall | InvalidCall

export function isRunnable(call: ToolCall): call is RunnableCall {
  return 'arguments' in call
}

/** Markup that began a call but names none: kept whole, never run, never prose. */
export interface MalformedCall {
  /** Error kind, for instance `empty`, `truncated`, `invalid_json`, `missing_name`, `stray_text`. */
  readonly error: string
  readonly raw: string
}

export interface AssistantMessage {
  readonly role: 'assistant'
  /** Visible text; empty when the model only called tools. */
  readonly content: string
  /** Reasoning, apart from the content. Absent when there was none. */
  readonly reasoning?: string
  /** In the order in which the model wrote them. Absent or empty: the reply calls nothing. */
  readonly toolCalls?: readonly ToolCall[]
}

export interface ToolMessage {
  readonly role: 'tool'
  readonly content: Content
  readonly toolCallId: string
  /** Name of the tool; some layouts print it. */
  readonly name?: string
}

export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

export interface ToolSpec {
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments, of type object. */
  readonly parameters: JsonSchema
}

/** What a policy is shown: messages (the system prompt among them) and the tools it may call. */
export interface Conversation {
  readonly messages: readonly Message[]
  readonly tools?: readonly ToolSpec[]
}

/** The text of a content; parts are joined without a separator. `image` stands in for each image (default: nothing). */
export function textOf(content: Content, image = ''): string {
  if (typeof content === 'string') return content
  return content.map((part) => (part.type === 'text' ? part.text : image)).join('')
}

export function hasImages(messages: readonly Message[]): boolean {
  return messages.some(
    ({ content }) => typeof content !== 'string' && content.some(({ type }) => type === 'image'),
  )
}
