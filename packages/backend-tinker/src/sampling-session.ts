import { withDeadline, type RenderedPrompt, type WaitOptions } from '@tiltyard/core'

import { backoff, parseJson, type Caller } from './caller.ts'
import { ForgottenError, type Future, type Futures } from './futures.ts'
import type { Gate } from './gate.ts'
import type { CheckedOptions } from './options.ts'
import type { Session } from './session.ts'
import {
  decodeSampleAnswer,
  encodeSampleCall,
  promptJson,
  sampleAnswerOfJson,
  type SampleAnswer,
  type SampleCall,
} from './wire/sampling.ts'

/** A request for samples, in the service's terms. */
export type SampleSettings = Omit<SampleCall, 'samplingSessionId' | 'seqId' | 'prompt'>

/** Fixed weights on the service. Requests have no order among themselves; each may be repeated without harm. */
export interface SamplingSession {
  readonly id: string
  sample(
    prompt: RenderedPrompt,
    settings: SampleSettings,
    options?: WaitOptions,
  ): Promise<SampleAnswer>
}

export interface SamplingSessionParts {
  readonly id: string
  readonly session: Session
  readonly options: CheckedOptions
  readonly caller: Caller
  readonly futures: Futures
  readonly gates: SamplingGates
  readonly signal: AbortSignal
}

/** Shared by all sampling sessions of a client. */
export interface SamplingGates {
  /** Unanswered requests. */
  readonly open: Gate
  /** Requests being sent, and the bytes of their prompts by the service's estimate. */
  readonly sending: Gate
  readonly bytes: Gate
  /** Until this moment of the clock nothing is sent: the service has asked for a pause. */
  pausedUntil: number
}

const BYTES_PER_TOKEN = 10
const LARGE_PROMPT_BYTES = 131_072
const SHORT_PAUSE_MS = 1_000
const LONG_PAUSE_MS = 5_000
const operation = 'sample'

export function createSamplingSession(parts: SamplingSessionParts): SamplingSession {
  const { id, session, options, caller, futures, gates, signal: ended } = parts
  const { clock, deadlines } = options
  let nextNumber = 0

  const pause = (bytes: number) => {
    const length = bytes <= LARGE_PROMPT_BYTES ? SHORT_PAUSE_MS : LONG_PAUSE_MS
    gates.pausedUntil = Math.max(gates.pausedUntil, clock.now() + length)
    caller.notices.say(
      'sampling is paused',
      'paused: sampling; the service has enough requests for now',
    )
  }

  /** The service has the request once this resolves. Too many requests are no error: the same one is sent again. */
  const submit = async (call: SampleCall, bytes: number, signal: AbortSignal): Promise<Future> => {
    const body = encodeSampleCall(call)
    for (;;) {
      const wait = gates.pausedUntil - clock.now()
      if (wait > 0) await clock.sleep(wait, signal)
      const response = await caller.send({
        operation,
        path: '/asample',
        body,
        headers: { 'x-tinker-sampling-backpressure': '1' },
        handles: [429],
        signal,
      })
      if (response.status !== 429) {
        caller.notices.over('sampling is paused', 'going on: sampling')
        return parseJson(operation, response) as Future
      }
      pause(bytes)
    }
  }

  const callOff = (future: Future) => {
    // Best effort: what isn't called off ends by itself.
    void caller
      .send({
        operation: 'call off a sample',
        path: '/cancel_future',
        body: JSON.stringify({ request_id: future.request_id }),
        retries: 0,
      })
      .catch(() => undefined)
  }

  const once = async (
    prompt: string,
    bytes: number,
    settings: SampleSettings,
    signal: AbortSignal,
  ): Promise<SampleAnswer> => {
    const call = { ...settings, samplingSessionId: id, seqId: nextNumber++, prompt }
    const future = await gates.sending.through(
      1,
      () => gates.bytes.through(bytes, () => submit(call, bytes, signal), signal),
      signal,
    )
    try {
      return await futures.result(future, {
        operation,
        type: 'Sample',
        signal,
        decode: decodeSampleAnswer,
        fromJson: sampleAnswerOfJson,
      })
    } catch (error) {
      if (signal.aborted && session.flags.cancel) callOff(future)
      throw error
    }
  }

  return {
    id,
    async sample(prompt, settings, { signal } = {}) {
      const text = promptJson(prompt)
      const bytes = BYTES_PER_TOKEN * prompt.length
      // Of its own: many samples may share their caller's signal.
      const either = AbortSignal.any(signal === undefined ? [ended] : [signal, ended])
      return gates.open.through(
        1,
        () =>
          withDeadline(
            async (within) => {
              for (let tries = 0; ; tries += 1) {
                try {
                  return await once(text, bytes, settings, within)
                } catch (error) {
                  // A lost result is sampled anew, under a new number.
                  if (!(error instanceof ForgottenError)) throw error
                  caller.notices.say('lost', 'sampling again: the service lost a result', {
                    tries: tries + 1,
                  })
                  await clock.sleep(backoff(tries), within)
                }
              }
            },
            {
              waitingFor: 'the service to sample',
              milliseconds: deadlines.sample,
              signal: either,
              clock,
            },
          ),
        either,
      )
    },
  }
}
