import {
  createPrompt,
  isRunnable,
  randomStream,
  tokenChunk,
  type AssistantMessage,
  type ParsedReply,
  type Sample,
} from '@tiltyard/core'

import { randomId } from '../keys.ts'
import type { Admitted } from './admit.ts'
import type { Broadcast } from './broadcast.ts'
import { createStopFilter, cutSample, decoded, firstStop, reasoningTokens } from './cut.ts'
import type { SampleRecord } from './record.ts'
import type { InferenceRequest } from './request.ts'
import type { CallDelta, Choice } from './result.ts'

/** Text of replies under way, on its way to those who follow the stream. */
export function growingReplies(
  { policy, request, tools }: Admitted,
  deltas: Broadcast<CallDelta>,
): {
  readonly push: (index: number, ids: Int32Array) => void
  readonly finish: (choice: Choice) => void
} {
  const replies = Array.from({ length: request.n }, () => ({
    stream: policy.renderer.stream({ tools, stop: 'stop' }),
    filter: createStopFilter(request.stop),
    text: '',
    reasoning: '',
  }))
  const send = (choice: number, type: 'text' | 'reasoning', text: string) => {
    if (text === '') return
    replies[choice]![type] += text
    deltas.push({ type, choice, text })
  }
  return {
    push(index, ids) {
      // A raw completion shows its markup too, which deltas leave out.
      if (request.route === 'completions') return
      const reply = replies[index]!
      for (const delta of reply.stream.push(ids)) {
        if (delta.type === 'text') send(index, 'text', reply.filter(delta.text))
        if (delta.type === 'reasoning') send(index, 'reasoning', delta.text)
      }
    },
    finish({ index, message }) {
      const { text, reasoning } = replies[index]!
      const whole = message.reasoning ?? ''
      if (whole.startsWith(reasoning)) send(index, 'reasoning', whole.slice(reasoning.length))
      if (message.content.startsWith(text)) send(index, 'text', message.content.slice(text.length))
    },
  }
}

/** A sample that was read. */
export interface ReadChoice {
  readonly choice: Choice
  readonly parsed: ParsedReply
  readonly cut: boolean
  readonly seed: number | undefined
}

export async function readChoice(
  { policy, request, tools, seeds, callSeeds, place }: Admitted,
  whole: Sample,
  index: number,
  signal: AbortSignal,
): Promise<ReadChoice> {
  const { renderer, sampler } = policy
  const sample = cutSample(renderer, tools, whole, request)
  const seed = seeds?.[index]
  const callId = callIds(callSeeds?.[index])
  const parsed = renderer.parse(sample.ids, { tools, stop: sample.stop, callId })
  const message = sentMessage(parsed, sample, request)
  const calls = message.toolCalls ?? []
  const finish = calls.length > 0 ? 'tool_calls' : sample.stop
  const shown = request.logprobs ?? 0
  const alternatives =
    shown === 0
      ? undefined
      : (
          await sampler.topLogprobs!(createPrompt([tokenChunk(sample.ids)], place.prompt), shown, {
            signal,
          })
        ).slice(place.prompt.length)
  return {
    choice: {
      index,
      message,
      finish,
      sample,
      ...(alternatives === undefined ? {} : { alternatives }),
      reasoningTokens: reasoningTokens(renderer, sample.ids, parsed),
    },
    parsed,
    cut: sample !== whole,
    seed,
  }
}

/** Ids of calls: random, or with a seed the same again, since the next prompt may show them. */
function callIds(seed: number | undefined): (index: number) => string {
  return (index) => {
    if (seed === undefined) return randomId('call_')
    const random = randomStream(seed, 'call', index)
    const part = () =>
      random
        .integer(2 ** 32)
        .toString(16)
        .padStart(8, '0')
    return `call_${part()}${part()}${part()}`
  }
}

/**
 * The reply as the client gets it: without stop text, with markup that names no call as text. Of a reply that reached the token
 * limit no call is given: half a reply is never acted on.
 */
function sentMessage(
  parsed: ParsedReply,
  sample: Sample,
  request: InferenceRequest,
): AssistantMessage {
  const { stop } = request
  if (request.route === 'completions') return rawMessage(parsed, stop)
  const { content, reasoning, toolCalls = [] } = parsed.message
  const isCut = sample.stop === 'length' && parsed.termination === 'length'
  const at = firstStop(content, stop)
  const shown = at === -1 ? content : content.slice(0, at)
  const markup = request.calls ? parsed.malformed.map(({ raw }) => raw) : callMarkup(parsed)
  const unread = isCut ? '' : markup.join('')
  return {
    role: 'assistant',
    content: shown + unread,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls.length === 0 || isCut || !request.calls ? {} : { toolCalls }),
  }
}

function callMarkup({ spans }: ParsedReply): readonly string[] {
  return spans.flatMap(({ kind, text }) => (kind === 'call' ? [text] : []))
}

/** All that was sampled as text, without what ended it. */
function rawMessage(
  { spans, termination }: ParsedReply,
  stop: readonly string[],
): AssistantMessage {
  const shown =
    termination === 'length' || spans.at(-1)?.kind !== 'markup' ? spans : spans.slice(0, -1)
  const text = decoded(shown)
  const at = firstStop(text, stop)
  return { role: 'assistant', content: at === -1 ? text : text.slice(0, at) }
}

/** Takes the replies into graph and record, before anybody sees their end. */
export async function commitAll(
  { attempt, place, settings, tags, record }: Admitted,
  choices: readonly ReadChoice[],
  untrained: SampleRecord['untrained'],
  ms: number,
): Promise<readonly SampleRecord[]> {
  const samples: SampleRecord[] = []
  for (const { choice, parsed, cut, seed } of choices) {
    const { sample, message } = choice
    const isWhole =
      sample.logprobs.length === sample.ids.length && sample.logprobs.every(Number.isFinite)
    const facts = { finish: choice.finish, parse: parseOutcome(parsed), cut }
    const { trains } = attempt.options
    const passes = trains?.({ ...tags, ...facts, sequence: record.sequence }) ?? true
    const why = untrained ?? (!passes ? 'filtered' : isWhole ? undefined : 'no_logprobs')
    const logprobs = isWhole ? sample.logprobs : new Float32Array(sample.ids.length)
    const { index, cause: fork } = await attempt.commit(
      place,
      { prompt: place.prompt, ids: sample.ids, stop: sample.stop, sent: message },
      {
        prompt: place.prompt,
        sample: { ...sample, logprobs },
        version: record.version,
        sampling: settings,
        ...(seed === undefined ? {} : { seed }),
        message: parsed.message,
        termination: parsed.termination,
        malformed: parsed.malformed,
        trained: why === undefined,
        ...tags,
        ms,
      },
    )
    samples.push({
      reply: index,
      ...facts,
      tokens: sample.ids.length,
      trained: why === undefined,
      ...(why === undefined ? {} : { untrained: why }),
      ...(fork === undefined ? {} : { fork }),
    })
  }
  return samples
}

function parseOutcome({ message, malformed }: ParsedReply): SampleRecord['parse'] {
  if (malformed.length > 0) return 'parse_failed'
  return (message.toolCalls ?? []).every(isRunnable) ? 'ok' : 'args_invalid'
}
