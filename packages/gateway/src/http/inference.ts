import type { Admission } from '../admission.ts'
import type { OpenAttempt } from '../attempt.ts'
import type { CallServices } from '../calls/admit.ts'
import { startCall, type ActiveCall } from '../calls/call.ts'
import { tryMarks } from '../calls/replays.ts'
import type { InferenceRequest } from '../calls/request.ts'
import type { CallResult } from '../calls/result.ts'
import { readChatRequest } from '../dialects/chat-request.ts'
import { chatCompletion, chatStream, type ChatOptions } from '../dialects/chat-response.ts'
import {
  completionStream,
  readCompletionsRequest,
  textCompletion,
} from '../dialects/completions.ts'
import { readBody, type Fields } from '../dialects/fields.ts'
import { readResponsesRequest } from '../dialects/responses-request.ts'
import { outputItems, responseBody, responseStream } from '../dialects/responses-response.ts'
import { abandoned, modelNotFound } from '../errors.ts'
import { splitModel, tagsOf, type Place } from '../identity.ts'
import type { Settings } from '../options.ts'
import type { Answer } from './answer.ts'
import type { Client } from './client.ts'
import { eventStream, unbuffered, type StreamPiece } from './event-stream.ts'
import { patientJson } from './patient-json.ts'

export interface InferenceServices {
  readonly settings: Settings
  readonly calls: CallServices
  readonly admission: Admission
  /** Names that mean a policy; others mean the attempt's own unless names are strict. */
  models(attempt: OpenAttempt): readonly string[]
  /** A request was refused, failed, or given an earlier call's reply. */
  count(what: 'replayed' | 'refused' | 'failed'): void
}

/** How a dialect reads a request and writes its reply. */
interface Dialect {
  readonly request: InferenceRequest
  readonly body: (result: CallResult) => object
  readonly stream: (
    call: ActiveCall,
    created: number,
  ) => AsyncGenerator<StreamPiece, void, undefined>
}

/** Answers one of the inference routes in the name of an attempt. @throws ApiError */
export async function infer(
  attempt: OpenAttempt,
  place: Place,
  request: Request,
  client: Client,
  services: InferenceServices,
): Promise<Answer> {
  const { settings, admission } = services
  const { text, body } = await readBody(request, settings.maxBodyBytes)
  const dialect = readDialect(attempt, place.route, body, settings)
  const { model, agent } = splitModel(dialect.request.model)
  const models = services.models(attempt)
  if (settings.strictModels && !models.includes(model)) throw modelNotFound(model, models)
  const tags = tagsOf(request.headers, place, agent)
  const marks = tryMarks(request.headers, place.route, tags, text)

  await admission.enter()
  let left = false
  const leave = () => {
    if (!left) admission.leave()
    left = true
  }
  try {
    // It left while the gateway was paused: no call begins that nobody waits for.
    if (client.gone) throw abandoned()
    const earlier = attempt.replays.find(marks)
    const call = earlier ?? startCall(attempt, dialect.request, tags, services.calls)
    if (earlier === undefined) attempt.replays.add(marks, call)
    else {
      earlier.record.replayed += 1
      services.count('replayed')
    }
    call.result.then(leave, leave)
    return await answer(call, dialect, earlier !== undefined, client, services)
  } catch (error) {
    leave()
    throw error
  }
}

function answer(
  call: ActiveCall,
  { request, body, stream }: Dialect,
  replayed: boolean,
  client: Client,
  { settings, calls }: InferenceServices,
): Promise<Answer> | Answer {
  const { clock, keepaliveMs, patienceMs } = settings
  const reader = call.attach()
  const unused = [...request.ignored, ...call.record.overridden]
  const headers = {
    'x-request-id': call.record.id,
    'x-tiltyard-policy-version': call.record.version.id,
    ...(replayed ? { 'x-tiltyard-replayed': '1' } : {}),
    ...(unused.length === 0 ? {} : { 'x-tiltyard-ignored': unused.map(headerText).join(', ') }),
  }
  if (request.stream) {
    const created = Math.floor(calls.wallClock() / 1000)
    const closed = (delivered: boolean) => (delivered ? reader.delivered() : reader.left())
    return {
      status: 200,
      headers: {
        ...headers,
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache',
        ...unbuffered,
      },
      body: eventStream(stream(call, created), { clock, keepaliveMs, client, closed }),
    }
  }
  const left = () => reader.left()
  client.onGone(left)
  if (client.gone) left()
  const text = call.result.then(
    (result) => {
      if (!client.gone) reader.delivered()
      return JSON.stringify(body(result))
    },
    (error: unknown) => {
      if (!client.gone) reader.left()
      throw error
    },
  )
  return patientJson(text, { clock, patienceMs, keepaliveMs, headers, left })
}

function readDialect(
  attempt: OpenAttempt,
  route: string,
  body: Fields,
  settings: Settings,
): Dialect {
  const { maxN, lenient, tokenizer, reasoningFields, exposeTokenIds } = settings
  const leniency = {
    toolChoice: lenient.includes('tool_choice'),
    responseFormat: lenient.includes('response_format'),
  }
  const options: ChatOptions = { tokenizer, reasoningFields, exposeTokenIds }
  if (route === '/chat/completions') {
    const request = readChatRequest(body, leniency, maxN)
    return {
      request,
      body: (result) => chatCompletion(result, request, options),
      stream: (call, created) => chatStream(call, request, options, created),
    }
  }
  if (route === '/completions') {
    const request = readCompletionsRequest(body, maxN)
    return {
      request,
      body: (result) => textCompletion(result, request, options),
      stream: (call, created) => completionStream(call, request, options, created),
    }
  }
  const request = readResponsesRequest(body, leniency, attempt.items)
  const keep = (result: CallResult) => {
    const output = outputItems(result.id, result.choices[0]!, request, options)
    attempt.items.keep(result.id, request.items, output)
  }
  return {
    request,
    body(result) {
      keep(result)
      return responseBody(result, request, options)
    },
    async *stream(call, created) {
      call.result.then(keep, () => {})
      yield* responseStream(call, request, options, created)
    },
  }
}

/** Field names come from outside: only what a header may hold. */
function headerText(name: string): string {
  return encodeURIComponent(name.slice(0, 100))
}
