import { systemClock, type Clock } from '@tiltyard/core'

import { spread } from '../metrics/numbers.ts'
import {
  createBusyMeter,
  createLagMeter,
  createSpans,
  type BusyMeter,
  type Spans,
} from '../metrics/spans.ts'

/** The watches of a run. */
export interface Timing {
  readonly spans: Spans
  /** At least one group is being played. */
  readonly sampling: BusyMeter
  /** At least one learner call waits for its answer. */
  readonly learning: BusyMeter
  /** Something came after the end of its episode, and was ignored. */
  readonly late: () => void
  /** Times of a step, from the end of the one before. */
  take(work: {
    readonly groupSeconds: readonly number[]
    readonly sampledTokens: number
    readonly trainedTokens: number
    readonly slotsPeak: number
  }): { readonly seconds: number; readonly metrics: Readonly<Record<string, number>> }
  stop(): void
}

export function createTiming(clock: Clock): Timing {
  const spans = createSpans(clock)
  const sampling = createBusyMeter(clock)
  const learning = createBusyMeter(clock)
  // Under a simulated clock there is no lag, and a timer that never ends would hide a run that is stuck.
  const lag = clock === systemClock ? createLagMeter(clock) : undefined
  let since = clock.now()
  let tooLate = 0
  return {
    spans,
    sampling,
    learning,
    late() {
      tooLate += 1
    },
    take({ groupSeconds, sampledTokens, trainedTokens, slotsPeak }) {
      const now = clock.now()
      const seconds = (now - since) / 1000
      since = now
      const samplingSeconds = sampling.take()
      const learningSeconds = learning.take()
      const lags = lag?.take()
      const ignored = tooLate
      tooLate = 0
      return {
        seconds,
        metrics: {
          ...spans.take(),
          ...spread('time/sampling_time', groupSeconds),
          'time/total': seconds,
          'time/sampling': samplingSeconds,
          'time/learning': learningSeconds,
          'idle/sampling': Math.max(0, seconds - samplingSeconds),
          'idle/learning': Math.max(0, seconds - learningSeconds),
          ...rate('rate/sampled_tokens', sampledTokens, samplingSeconds),
          ...rate('rate/trained_tokens', trainedTokens, learningSeconds),
          'slots/peak': slotsPeak,
          'late/ignored': ignored,
          ...(lags === undefined ? {} : { 'lag/max_ms': lags.max, 'lag/mean_ms': lags.mean }),
        },
      }
    },
    stop: () => lag?.stop(),
  }
}

function rate(name: string, tokens: number, seconds: number): Readonly<Record<string, number>> {
  return seconds > 0 ? { [name]: tokens / seconds } : {}
}
