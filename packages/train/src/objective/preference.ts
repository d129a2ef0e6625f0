import { DataError } from '@tiltyard/core'

import type { CustomLoss } from './custom-loss.ts'

export interface PreferencePair {
  /** log-probability of the whole preferred reply under the reference, in nats. */
  readonly chosen: number
  /** The same for the other reply. */
  readonly rejected: number
}

/** What a preference loss tells about its batch. */
export interface PreferenceMetrics {
  /** Share of pairs whose preferred reply gained more than the other. */
  readonly accuracy: number
  /** mean of beta · ((p_c − b_c) − (p_r − b_r)) */
  readonly margin: number
}

/**
 * Direct preference optimization, for `forwardBackwardCustom`. Data come in pairs: 2i is preferred to 2i + 1. With p the
 * log-probability of a reply (the sum over its targets whose mask is not 0) and b the reference's:
 *
 *     L = mean over pairs of −log σ(beta · ((p_c − b_c) − (p_r − b_r)))
 *
 * One pair with p = −10 and −12, b = −11 and −11.5, beta 0.1 gives margin 0.15 and loss 0.6209571.
 */
export function preferenceLoss(
  references: readonly PreferencePair[],
  options: {
    readonly beta?: number
    readonly onMetrics?: (metrics: PreferenceMetrics) => void
  } = {},
): CustomLoss {
  const { beta = 0.1, onMetrics } = options
  return (logprobs, data) => {
    if (data.length !== references.length * 2) {
      throw new DataError(
        `${references.length} references need ${references.length * 2} data, got ${data.length}`,
      )
    }
    const total = (index: number) =>
      logprobs[index]!.reduce((sum, p, at) => sum + p * maskAt(index, at), 0)
    const maskAt = (index: number, at: number) => data[index]!.mask?.[at] ?? 1
    const margins = references.map(
      ({ chosen, rejected }, pair) =>
        beta * (total(2 * pair) - chosen - (total(2 * pair + 1) - rejected)),
    )
    onMetrics?.({
      accuracy: margins.filter((margin) => margin > 0).length / margins.length,
      margin: mean(margins),
    })
    const gradients = data.map((datum, index) => {
      const margin = margins[Math.floor(index / 2)]!
      const slope = (index % 2 === 0 ? -1 : 1) * (beta / margins.length / (1 + Math.exp(margin)))
      return Float32Array.from(datum.targets, (_, at) => slope * maskAt(index, at))
    })
    return { loss: mean(margins.map(softLoss)), gradients }
  }
}

/** −log σ(margin), also where exp would overflow. */
function softLoss(margin: number): number {
  return Math.max(0, -margin) + Math.log1p(Math.exp(-Math.abs(margin)))
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
