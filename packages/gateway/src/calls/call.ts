import { TiltyardError, type RenderedPrompt, type Sample } from '@tiltyard/core'

import type { OpenAttempt } from '../attempt.ts'
import { asApiError, noImages, samplerFailed, type ApiError } from '../errors.ts'
import { splitModel, type Tags } from '../identity.ts'
import { admit, type Admitted, type CallServices } from './admit.ts'
import { createBroadcast, type Broadcast } from './broadcast.ts'
import { createReaders, type CallReaders } from './readers.ts'
import type { OpenRecord } from './record.ts'
import { commitAll, growingReplies, readChoice } from './replies.ts'
import type { InferenceRequest } from './request.ts'
import type { CallDelta, CallResult } from './result.ts'
import type { Stopping } from './stopping.ts'

/** A call under way or over, which any number of connections may wait for. */
export interface ActiveCall {
  readonly record: OpenRecord
  readonly prompt: RenderedPrompt
  readonly deltas: Broadcast<CallDelta>
  readonly result: Promise<CallResult>
  readonly attach: CallReaders['attach']
  readonly state: CallReaders['state']
}

/**
 * Admits a request and begins to sample. What can be refused is refused here, at once, so that a stream's head is only sent for a
 * call that goes on. The policy that it began with stays its policy.
 * @throws ApiError
 */
export function startCall(
  attempt: OpenAttempt,
  request: InferenceRequest,
  tags: Tags,
  services: CallServices,
): ActiveCall {
  attempt.check()
  const lease = attempt.takePolicy(splitModel(request.model).model)
  try {
    const admitted = admit(attempt, request, tags, lease, services)
    return begin(admitted, () => lease.release())
  } catch (error) {
    lease.release()
    throw error
  }
}

function begin(call: Admitted, release: () => void): ActiveCall {
  const { attempt, record, services, place } = call
  const { clock, orphanMs } = services
  const readers = createReaders(record, clock, orphanMs)
  const deltas = createBroadcast<CallDelta>()
  const began = clock.now()
  attempt.register(record, readers.stop)
  const settle = (error?: ApiError) => {
    readers.settle()
    record.ms = clock.now() - began
    const wasStopped = readers.stopping.reason !== undefined
    record.status = error === undefined ? 'ok' : wasStopped ? 'cancelled' : 'failed'
    if (error !== undefined) record.error = error.code
    attempt.settle(record, record.status === 'failed' ? error : undefined)
    release()
  }
  const result = carryOut(call, readers, deltas).then(
    (done) => {
      settle()
      deltas.end()
      return done
    },
    (error: unknown) => {
      const answer = asApiError(readers.stopping.reason ?? error)
      settle(answer)
      deltas.fail(answer)
      throw answer
    },
  )
  result.catch(() => {})
  // No closure over the call is kept: it holds the whole conversation, which would add up over an attempt.
  const { attach, state } = readers
  return { record, prompt: place.prompt, deltas, result, attach, state }
}

/** Samples, reads and commits the replies of a call. */
async function carryOut(
  call: Admitted,
  readers: CallReaders,
  deltas: Broadcast<CallDelta>,
): Promise<CallResult> {
  const { record, services, request, place } = call
  const { stopping } = readers
  const growing = request.stream ? growingReplies(call, deltas) : undefined
  const began = services.clock.now()
  const samples = await sample(call, stopping, growing?.push)
  const ms = services.clock.now() - began
  const choices = await Promise.all(
    samples.map((each, index) => readChoice(call, each, index, stopping.signal)),
  )
  const untrained = (await readers.claimed()) ? call.untrained : 'undelivered'
  record.samples = await commitAll(call, choices, untrained, ms)
  if (untrained === 'undelivered') throw stopping.reason!
  for (const { choice } of choices) {
    growing?.finish(choice)
    deltas.push({ type: 'end', choice: choice.index, reply: choice })
  }
  return {
    id: record.id,
    created: Math.floor(services.wallClock() / 1000),
    model: request.model,
    version: record.version,
    prompt: place.prompt,
    reused: place.reused,
    choices: choices.map(({ choice }) => choice),
  }
}

/** Samples; a sampler that fails before its first token is asked again, after a pause, while the call has time. */
async function sample(
  { policy, request, services, place, settings, seeds, record }: Admitted,
  stopping: Stopping,
  onTokens: ((index: number, ids: Int32Array) => void) | undefined,
): Promise<readonly Sample[]> {
  const { stop } = policy.renderer
  const { clock } = services
  const until = clock.now() + services.callMs
  let streamed = false
  for (let tries = 0; ; tries += 1) {
    try {
      return await stopping.run(
        (signal) =>
          policy.sampler.sample(
            {
              prompt: place.prompt,
              maxTokens: record.maxTokens,
              n: request.n,
              stop: { tokens: stop.tokens, strings: [...stop.strings, ...request.stop] },
              ...settings,
              ...(seeds === undefined ? {} : { seeds }),
              ...(onTokens === undefined
                ? {}
                : {
                    onTokens: (index, ids) => {
                      streamed = true
                      onTokens(index, ids)
                    },
                  }),
            },
            { signal },
          ),
        until - clock.now(),
      )
    } catch (error) {
      if (stopping.reason !== undefined) throw stopping.reason
      if (takesNoImages(error, place.prompt)) throw noImages('messages')
      const pause = RETRY_MS * 2 ** tries
      const isOver = clock.now() + pause >= until
      if (streamed || isOver || tries >= services.samplerRetries) throw samplerFailed(error)
      await clock.sleep(pause, stopping.signal)
    }
  }
}

/** A renderer may have images and the backend behind the sampler none. */
function takesNoImages(error: unknown, prompt: RenderedPrompt): boolean {
  const isRefusal = TiltyardError.is(error, 'UNSUPPORTED') || TiltyardError.is(error, 'DATA')
  return isRefusal && prompt.chunks().some(({ type }) => type === 'image')
}

const RETRY_MS = 250
