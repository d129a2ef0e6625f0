import { asError, withDeadline, type Sample } from '@tiltyard/core'

import type { OpenAttempt } from '../attempt.ts'
import { abandoned, asApiError, samplerFailed, type ApiError } from '../errors.ts'
import type { Placement } from '../graph/placement.ts'
import { splitModel, type Tags } from '../identity.ts'
import { deferred } from '../waiting.ts'
import { admit, type Admitted, type CallServices } from './admit.ts'
import { createBroadcast, type Broadcast } from './broadcast.ts'
import type { OpenRecord } from './record.ts'
import { commitAll, growingReplies, readChoice } from './replies.ts'
import type { InferenceRequest } from './request.ts'
import type { CallDelta, CallResult } from './result.ts'

/** A call under way or over, which any number of connections may wait for. */
export interface ActiveCall {
  readonly record: OpenRecord
  readonly place: Placement
  readonly deltas: Broadcast<CallDelta>
  readonly result: Promise<CallResult>
  /** A client waits. Call exactly one of the two when it stops waiting. */
  attach(): { delivered(): void; left(): void }
  readonly state: () => 'running' | 'delivered' | 'orphaned' | 'failed'
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
  const { attempt, record, services, request } = call
  const { clock } = services
  const deltas = createBroadcast<CallDelta>()
  const stopped = new AbortController()
  let readers = 0
  let grace: AbortController | undefined
  const waiting: ((claimed: boolean) => void)[] = []
  const wake = (isClaimed: boolean) => {
    for (const resolve of waiting.splice(0)) resolve(isClaimed)
  }
  const stop = (reason: Error) => {
    stopped.abort(reason)
    wake(false)
  }
  const claimed = async () => {
    if (stopped.signal.aborted) return false
    if (readers > 0 || record.delivered) return true
    const claim = deferred<boolean>()
    waiting.push(claim.resolve)
    return claim.promise
  }
  attempt.register(record, stop)
  const began = clock.now()

  const work = async (): Promise<CallResult> => {
    const growing = request.stream ? growingReplies(call, deltas) : undefined
    const samples = await sample(call, stopped.signal, growing?.push)
    const ms = clock.now() - began
    const choices = await Promise.all(
      samples.map((each, index) => readChoice(call, each, index, stopped.signal)),
    )
    const untrained = (await claimed()) ? call.untrained : 'undelivered'
    record.samples = await commitAll(call, choices, untrained, ms)
    if (untrained === 'undelivered') throw asError(stopped.signal.reason)
    for (const { choice } of choices) {
      growing?.finish(choice)
      deltas.push({ type: 'end', choice: choice.index, reply: choice })
    }
    return {
      id: record.id,
      created: Math.floor(services.wallClock() / 1000),
      model: request.model,
      version: record.version,
      prompt: call.place.prompt,
      reused: call.place.reused,
      choices: choices.map(({ choice }) => choice),
    }
  }
  const settle = (error?: ApiError) => {
    grace?.abort()
    record.ms = clock.now() - began
    record.status = error === undefined ? 'ok' : stopped.signal.aborted ? 'cancelled' : 'failed'
    if (error !== undefined) record.error = error.code
    attempt.settle(record, record.status === 'failed' ? error : undefined)
    release()
  }
  const result = work().then(
    (done) => {
      settle()
      deltas.end()
      return done
    },
    (error: unknown) => {
      const answer = asApiError(stopped.signal.aborted ? stopped.signal.reason : error)
      settle(answer)
      deltas.fail(answer)
      throw answer
    },
  )
  result.catch(() => {})

  const orphan = () => {
    if (record.status !== 'running') return
    grace = new AbortController()
    clock.sleep(services.orphanMs, grace.signal).then(
      () => stop(abandoned()),
      () => {},
    )
  }
  return {
    record,
    place: call.place,
    deltas,
    result,
    attach() {
      readers += 1
      grace?.abort()
      wake(true)
      let isReading = true
      return {
        delivered() {
          if (isReading) readers -= 1
          isReading = false
          record.delivered = true
        },
        left() {
          if (isReading) readers -= 1
          else record.delivered = false
          isReading = false
          if (readers === 0 && !record.delivered) orphan()
        },
      }
    },
    state() {
      if (record.status === 'failed' || record.status === 'cancelled') return 'failed'
      if (record.delivered) return 'delivered'
      return readers > 0 ? 'running' : 'orphaned'
    },
  }
}

/** Samples; a sampler that fails before its first token is asked again, after a pause. */
async function sample(
  { policy, request, services, place, settings, seeds, record }: Admitted,
  signal: AbortSignal,
  onTokens: ((index: number, ids: Int32Array) => void) | undefined,
): Promise<readonly Sample[]> {
  const { stop } = policy.renderer
  let streamed = false
  for (let tries = 0; ; tries += 1) {
    try {
      return await withDeadline(
        (inner) =>
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
            { signal: inner },
          ),
        { waitingFor: 'a reply', milliseconds: services.callMs, signal, clock: services.clock },
      )
    } catch (error) {
      signal.throwIfAborted()
      if (streamed || tries >= services.samplerRetries) throw samplerFailed(error)
      await services.clock.sleep(RETRY_MS * 2 ** tries, signal)
    }
  }
}

const RETRY_MS = 250
