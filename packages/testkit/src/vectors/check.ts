import {
  isRefusal,
  isRunnable,
  type Conversation,
  type ParsedReply,
  type PromptChunk,
  type Renderer,
  type StopReason,
  type Tokenizer,
  type TrainOn,
} from '@tiltyard/core'
import { splitAtMarkers, encodeSegments } from '@tiltyard/core/rendering'

import { hasBareTools, vectorConversation, vectorMessage, vectorTools } from './conversation.ts'
import { idsDifference, textDifference, valueDifference } from './difference.ts'
import type {
  ParseVector,
  PrefixVector,
  RenderVector,
  TemplateOptions,
  Vector,
  WeightsVector,
} from './format.ts'

/** What a vector asks a renderer for. */
export interface RendererRequest {
  /** Name of the layout. */
  readonly template: string
  /** Arguments of its chat template, such as `enable_thinking`; `bare_tools` when tools stand without their wrapper. */
  readonly options: TemplateOptions
  readonly tokenizer: Tokenizer
}

/** Makes the renderer that a vector is checked against. Throws for options that the layout refuses. */
export type RendererFactory = (request: RendererRequest) => Renderer

/** Differences, each readable by itself; none when the case passes. */
export type Differences = readonly string[]

/** Checks a case. Never throws: what a renderer throws is a difference too. */
export function checkVector(
  { kind, vector }: Vector,
  make: RendererFactory,
  tokenizer: Tokenizer,
): Differences {
  const context: Context = {
    tokenizer,
    renderer: (options) => make({ template: vector.template, options, tokenizer }),
  }
  const mustFail = 'error' in vector && vector.error !== undefined
  try {
    const differences = checks[kind](vector as never, context)
    return mustFail ? [`expected an error (${vector.error}), got none`] : present(differences)
  } catch (error) {
    if (mustFail) return []
    return [`threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`]
  }
}

interface Context {
  readonly tokenizer: Tokenizer
  readonly renderer: (options: TemplateOptions) => Renderer
}

type Found = readonly (string | undefined)[]

const checks = {
  render: checkRender,
  parse: checkParse,
  prefix: checkPrefix,
  weights: checkWeights,
} as const

function checkRender(vector: RenderVector, context: Context): Found {
  const { add_generation_prompt: withHeader, ...options } = vector.options
  const renderer = context.renderer({
    ...options,
    ...(hasBareTools(vector.tools) ? { bare_tools: true } : {}),
  })
  const conversation = vectorConversation(vector.messages, vector.tools)
  const chunks = (
    withHeader === true ? renderer.prompt(conversation) : transcript(renderer, conversation)
  ).chunks()
  if (vector.text === undefined) return []
  return [compare(vector.text, vector.tokens_safe ?? vector.tokens, chunks, context)]
}

function checkParse(vector: ParseVector, context: Context): Found {
  const { expected } = vector
  const thinking = { open: { enable_thinking: true }, closed: { enable_thinking: false }, auto: {} }
  const renderer = context.renderer(thinking[vector.thinking])
  const ids = sampledIds(vector, context.tokenizer)
  const stop: StopReason = ids.some((id) => renderer.stop.tokens.includes(id)) ? 'stop' : 'length'
  const reply = { tools: vectorTools(vector.tools), stop }
  const parsed = renderer.parse(ids, reply)

  const stream = renderer.stream(reply)
  for (const id of ids) stream.push(Int32Array.of(id))
  const streamed = stream.end(stop).reply

  const { message } = parsed
  const calls = (message.toolCalls ?? []).flatMap((call) =>
    isRunnable(call) ? [{ name: call.name, arguments: sorted(call.arguments) }] : [],
  )
  const wantedCalls = expected.tool_calls.map(({ name, arguments: args }) => ({
    name,
    arguments: sorted(args),
  }))
  return [
    textOr('content', expected.content, message.content),
    valueDifference('reasoning', expected.reasoning_content, message.reasoning ?? null),
    valueDifference('calls', wantedCalls, calls),
    valueDifference(
      'errors',
      expected.unparsed.map(({ error }) => error).toSorted(),
      errorKinds(parsed),
    ),
    valueDifference('termination', expected.termination, parsed.termination),
    valueDifference('trailing text', expected.trailing_text, parsed.trailing),
    textOr('spans', context.tokenizer.decode(ids), parsed.spans.map(({ text }) => text).join('')),
    valueDifference('streamed id by id', parsed, streamed),
  ]
}

/** Kinds of what could not be read, in the order of the alphabet. A call's error begins with its kind. */
function errorKinds({ malformed, message }: ParsedReply): readonly string[] {
  const invalid = (message.toolCalls ?? []).flatMap((call) =>
    isRunnable(call) ? [] : [call.error.split(':', 1)[0]!],
  )
  return [...malformed.map(({ error }) => error), ...invalid].toSorted()
}

function checkPrefix(vector: PrefixVector, context: Context): Found {
  const { tokenizer } = context
  const renderer = context.renderer(vector.options)
  const { messages, tools } = vectorConversation(vector.messages, vector.tools)
  const next = vector.new_messages.map(vectorMessage)
  const prompt = renderer.prompt({ messages, ...(tools === undefined ? {} : { tools }) })
  const again = vectorConversation(
    [...vector.messages, vector.assistant, ...vector.new_messages],
    vector.tools,
  )
  const ids = sampledIds(vector, tokenizer)
  const extended = renderer.extend(prompt, { ids, stop: 'stop' }, { messages: next as never })
  const differences = [
    compare(vector.prompt_text, vector.prompt_tokens, prompt.chunks(), context),
    compare(
      vector.next_prompt_text,
      vector.next_prompt_tokens,
      renderer.prompt(again).chunks(),
      context,
    ),
  ]
  if (isRefusal(extended)) {
    const wrong = vector.text_extends ? `refused to extend: ${extended.refused}` : undefined
    return [...differences, wrong]
  }
  const whole = vector.prompt_text + vector.sampled + vector.appended_text
  const { prompt_tokens: before, sampled_tokens: sampled, appended_tokens: after } = vector
  const tokens = before && sampled && after ? [...before, ...sampled, ...after] : undefined
  return [...differences, compare(whole, tokens, extended.chunks(), context)]
}

function checkWeights(vector: WeightsVector, context: Context): Found {
  const renderer = context.renderer(vector.options)
  const conversation = vectorConversation(vector.messages, vector.tools)
  const rows = renderer.supervised(conversation, vector.train_on as TrainOn)
  const examples = vector.examples ?? []
  return [
    valueDifference('examples', examples.length, rows.length),
    ...examples.flatMap(({ segments, tokens, weights }, index) => {
      const row = rows[index]
      if (row === undefined) return []
      const text = segments.map((segment) => segment.text).join('')
      const trained = segments.filter(({ weight }) => weight === 1).map((segment) => segment.text)
      return [
        compare(text, tokens, row.chunks, context),
        textOr(
          'trained text',
          trained.join(''),
          trainedText(row.chunks, row.weights, context.tokenizer),
        ),
        sameVocabulary(text, tokens, context.tokenizer)
          ? valueDifference('weights', weights, [...row.weights])
          : undefined,
      ]
    }),
  ]
}

function transcript(renderer: Renderer, conversation: Conversation) {
  if (renderer.transcript === undefined) {
    throw new Error(
      'the case has no header of a next reply; the renderer needs `transcript` for it',
    )
  }
  return renderer.transcript(conversation)
}

/** Ids where the vector was made with this vocabulary, else text. */
function compare(
  text: string,
  tokens: readonly number[] | undefined,
  chunks: readonly PromptChunk[],
  { tokenizer }: Context,
): string | undefined {
  const ids = idsOf(chunks, tokenizer)
  if (sameVocabulary(text, tokens, tokenizer)) {
    return idsDifference(tokens, ids, tokenizer)
  }
  return textDifference(text.normalize('NFC'), tokenizer.decode(ids).normalize('NFC'))
}

/** Whether ids of a vector mean the vector's text in this vocabulary. */
function sameVocabulary(
  text: string,
  tokens: readonly number[] | undefined,
  tokenizer: Tokenizer,
): tokens is readonly number[] {
  return tokens !== undefined && tokenizer.decode(tokens).normalize('NFC') === text.normalize('NFC')
}

function sampledIds(
  vector: { readonly sampled: string; readonly sampled_tokens?: readonly number[] | undefined },
  tokenizer: Tokenizer,
): Int32Array {
  const { sampled, sampled_tokens: tokens } = vector
  if (sameVocabulary(sampled, tokens, tokenizer)) return Int32Array.from(tokens)
  return idsOf(encodeSegments(tokenizer, splitAtMarkers(tokenizer, sampled)), tokenizer)
}

/** An image is one placeholder in a template's text. */
function idsOf(chunks: readonly PromptChunk[], tokenizer: Tokenizer): Int32Array {
  const placeholder = tokenizer.markers.get('<|image_pad|>') ?? -1
  return Int32Array.from(
    chunks.flatMap((chunk) => (chunk.type === 'tokens' ? [...chunk.ids] : [placeholder])),
  )
}

function trainedText(
  chunks: readonly PromptChunk[],
  weights: Float32Array,
  tokenizer: Tokenizer,
): string {
  const ids = idsOf(chunks, tokenizer)
  return tokenizer.decode(ids.filter((_, index) => weights[index] === 1))
}

function textOr(what: string, expected: string, got: string): string | undefined {
  const difference = textDifference(expected, got)
  return difference === undefined ? undefined : `${what}: ${difference}`
}

function sorted<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map(sorted) as Value
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  ) as Value
}

function present(differences: Found): Differences {
  return differences.filter((difference) => difference !== undefined)
}
