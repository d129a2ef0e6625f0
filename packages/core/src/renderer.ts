import type { Contract } from './contract.ts'
import type {
  AssistantMessage,
  Conversation,
  MalformedCall,
  SystemMessage,
  ToolMessage,
  ToolSpec,
  UserMessage,
} from './messages.ts'
import type { StopCondition, StopReason } from './sampler.ts'
import type { PromptChunk, RenderedPrompt } from './tokens.ts'

/**
 * Conversation → prompt tokens; sampled tokens → message. One renderer object serves sampling, recording and training of a
 * run. Pure: the same input gives the same output, and nothing is kept between calls.
 */
export interface Renderer extends Contract<'renderer/1'> {
  readonly name: string
  /** Hash of the template that it mirrors, its options and its tokenizer. Part of a run's identity. */
  readonly fingerprint: string
  readonly history: HistoryBehaviour
  readonly capabilities: RendererCapabilities
  /** What ends a reply. */
  readonly stop: StopCondition
  /**
   * System prompt, tools, messages, and the header of the next reply. Caller text never becomes a marker.
   * @throws ConfigError for a conversation that the template refuses.
   */
  prompt(conversation: Conversation): RenderedPrompt
  /**
   * Goes on from a prompt and the reply sampled for it: the result starts with exactly these ids. Costs what is new.
   * A refusal says why the template can't continue so; the caller then renders the whole conversation and starts a new datum.
   */
  extend(prompt: RenderedPrompt, reply: Reply, next: NextInput): RenderedPrompt | Refusal
  /** Never throws. The decoded reply equals the concatenation of the spans. */
  parse(ids: Int32Array, context: ReplyContext): ParsedReply
  /** The same parse, a few ids at a time; the end equals `parse` of all ids, however they were cut. */
  stream(context: ReplyContext): ReplyStream
  /**
   * Token rows with weights for supervised training. More than one where the template rewrites history.
   * @throws ConfigError when `on` can't be expressed, or a trained reply contradicts the prompt.
   */
  supervised(conversation: Conversation, on: TrainOn): readonly WeightedTokens[]
  /** The conversation as it stands, without the header of a next reply: for comparing with a template's output. Optional. */
  transcript?(conversation: Conversation): RenderedPrompt
}

/** Whether prompt k+1 of a re-rendered conversation starts with prompt k plus the canonical reply. */
export interface HistoryBehaviour {
  /** After tool results. */
  readonly extendsToolLoop: boolean
  /** After a new user message. */
  readonly extendsUserTurn: boolean
  /** What breaks it, in a sentence; empty when nothing does. */
  readonly breaks: string
}

export interface RendererCapabilities {
  readonly tools: boolean
  readonly images: boolean
  /** The layout has a place for reasoning. */
  readonly reasoning: boolean
}

/** What was sampled for a prompt. */
export interface Reply {
  /** As sampled, the stop token included when it was sampled. */
  readonly ids: Int32Array
  readonly stop: StopReason
}

/** What follows a reply. An assistant message is never among it: replies are sampled. */
export interface NextInput {
  readonly messages: readonly (ToolMessage | UserMessage | SystemMessage)[]
}

export interface Refusal {
  readonly refused: string
}

export function isRefusal(value: RenderedPrompt | Refusal): value is Refusal {
  return 'refused' in value
}

export interface ReplyContext {
  /** The tools that the prompt declared; they type the arguments. */
  readonly tools: readonly ToolSpec[]
  readonly stop: StopReason
  /** Id of the reply's nth call. Default: `call_<n>`. */
  readonly callId?: (index: number) => string
}

export type SpanKind = 'text' | 'reasoning' | 'call' | 'markup'

/** A labelled part of the decoded reply. */
export interface ReplySpan {
  readonly kind: SpanKind
  readonly text: string
}

/** How the reply ended: its stop token, the model's end-of-text, or neither (a limit). */
export type Termination = 'stop' | 'eos' | 'length'

export interface ParsedReply {
  readonly message: AssistantMessage
  readonly termination: Termination
  /** Call markup that names no call; empty when all is well. */
  readonly malformed: readonly MalformedCall[]
  /** Text after the first call, which the template has no place for; absent when there is none. */
  readonly trailing?: string
  readonly spans: readonly ReplySpan[]
}

/** A piece of a reply as it streams. `call` deltas: first with id and name, then with pieces of the JSON arguments. */
export type ReplyDelta =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: 'arguments'; readonly index: number; readonly text: string }

export interface ReplyStream {
  /** Text that may become markup is held back until it is known. */
  push(ids: Int32Array): readonly ReplyDelta[]
  /** The deltas that were held back, and the whole. */
  end(stop: StopReason): { readonly deltas: readonly ReplyDelta[]; readonly reply: ParsedReply }
}

/** Which tokens a supervised example trains: all replies, the last, or those after the last user message. */
export type TrainOn = 'all_assistant_messages' | 'last_assistant_message' | 'last_assistant_turn'

export interface WeightedTokens {
  readonly chunks: readonly PromptChunk[]
  /** One weight per position: 1 where the model would sample, 0 elsewhere. */
  readonly weights: Float32Array
}
