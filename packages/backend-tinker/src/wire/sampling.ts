import {
  lineage,
  mergeChunks,
  type PromptChunk,
  type RenderedPrompt,
  type Sample,
  type StopReason,
  type TokenLogprob,
} from '@tiltyard/core'

import { float32Of, int32Of } from './arrays.ts'
import { fieldsOf } from './protobuf.ts'

/** What an `asample` call asks for. Names are the service's. */
export interface SampleCall {
  readonly samplingSessionId: string
  readonly seqId: number
  /** From `promptJson`, so that calls which share a prompt share its text. */
  readonly prompt: string
  readonly numSamples: number
  readonly maxTokens: number
  readonly temperature?: number
  readonly topK?: number
  readonly topP?: number
  readonly seed?: number
  readonly stop?: readonly string[] | readonly number[]
  readonly promptLogprobs?: boolean
  readonly topkPromptLogprobs?: number
}

/**
 * The prompt as JSON, straight from its typed arrays. What its first handle brings is a chunk of its own: many prompts share it, and
 * a server may keep it ready.
 */
export function promptJson(prompt: RenderedPrompt): string {
  const [root, ...rest] = lineage(prompt)
  const parts = [root!.added, rest.flatMap(({ added }) => added)].flatMap(mergeChunks)
  return `{"chunks":[${parts.map(chunkJson).join()}]}`
}

function chunkJson(chunk: PromptChunk): string {
  if (chunk.type === 'tokens') return `{"type":"encoded_text","tokens":[${chunk.ids.join()}]}`
  const data = Buffer.from(chunk.data.buffer, chunk.data.byteOffset, chunk.data.byteLength)
  return `{"type":"image","format":"${chunk.format}","expected_tokens":${chunk.tokens},"data":"${data.toString('base64')}"}`
}

export function encodeSampleCall(call: SampleCall): string {
  const fields = {
    type: 'sample',
    sampling_session_id: call.samplingSessionId,
    seq_id: call.seqId,
    num_samples: call.numSamples,
    sampling_params: {
      max_tokens: call.maxTokens,
      temperature: call.temperature ?? 1,
      top_k: call.topK ?? -1,
      top_p: call.topP ?? 1,
      ...(call.seed !== undefined && { seed: call.seed }),
      ...(call.stop !== undefined && { stop: call.stop }),
    },
    prompt_logprobs: call.promptLogprobs ?? false,
    topk_prompt_logprobs: call.topkPromptLogprobs ?? 0,
  }
  return `${JSON.stringify(fields).slice(0, -1)},"prompt":${call.prompt}}`
}

export interface SampleAnswer {
  readonly samples: readonly Sample[]
  /** One per position of the prompt, NaN where there is none. Only when asked for. */
  readonly promptLogprobs?: Float32Array
  /** Per position of the prompt. Only when asked for. */
  readonly topkPromptLogprobs?: readonly (readonly TokenLogprob[])[]
}

/** What fills up a row that has fewer than k entries. */
const UNUSED_LOGPROB = -99_999

/** Message `SampleResponse`. */
export function decodeSampleAnswer(bytes: Uint8Array): SampleAnswer {
  const samples: Sample[] = []
  let promptLogprobs: Float32Array | undefined
  let topk: readonly (readonly TokenLogprob[])[] | undefined
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) samples.push(decodeSequence(field.bytes))
    if (field.number === 2 && field.bytes.length > 0) promptLogprobs = float32Of(field.bytes)
    if (field.number === 3) topk = decodeTopk(field.bytes)
  }
  return {
    samples,
    ...(promptLogprobs !== undefined && { promptLogprobs }),
    ...(topk !== undefined && { topkPromptLogprobs: topk }),
  }
}

function decodeSequence(bytes: Uint8Array): Sample {
  let ids = new Int32Array()
  let logprobs = new Float32Array()
  let stop: StopReason = 'stop'
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) stop = stopReason(field.value)
    if (field.number === 2) ids = int32Of(field.bytes)
    if (field.number === 3) logprobs = float32Of(field.bytes)
  }
  return { ids, logprobs, stop }
}

function stopReason(value: number): StopReason {
  if (value === 0) return 'stop'
  if (value === 1) return 'length'
  throw new RangeError(`no stop reason has number ${value}`)
}

function decodeTopk(bytes: Uint8Array): readonly (readonly TokenLogprob[])[] {
  let ids = new Int32Array()
  let logprobs = new Float32Array()
  let k = 0
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) ids = int32Of(field.bytes)
    if (field.number === 2) logprobs = float32Of(field.bytes)
    if (field.number === 3) k = field.value
  }
  const cell = (index: number) => ({ id: ids[index]!, logprob: logprobs[index]! })
  const starts = Array.from({ length: k === 0 ? 0 : ids.length / k }, (_, row) => row * k)
  return starts.map((start) =>
    [...ids.subarray(start, start + k).keys()]
      .map((column) => cell(start + column))
      .filter(({ logprob }) => logprob > UNUSED_LOGPROB),
  )
}

/** The same as JSON, which services before 0.18 of the protocol answer with. */
export function sampleAnswerOfJson(value: {
  readonly sequences: readonly {
    readonly tokens: readonly number[]
    readonly logprobs?: readonly number[] | null
    readonly stop_reason: StopReason
  }[]
  readonly prompt_logprobs?: readonly (number | null)[] | null
  readonly topk_prompt_logprobs?: readonly (readonly (readonly [number, number])[] | null)[] | null
}): SampleAnswer {
  const { sequences, prompt_logprobs: prompt, topk_prompt_logprobs: topk } = value
  return {
    samples: sequences.map(({ tokens, logprobs, stop_reason: stop }) => ({
      ids: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs ?? []),
      stop,
    })),
    ...(prompt != null && { promptLogprobs: Float32Array.from(prompt, (it) => it ?? Number.NaN) }),
    ...(topk != null && {
      topkPromptLogprobs: topk.map((row) => (row ?? []).map(([id, logprob]) => ({ id, logprob }))),
    }),
  }
}
