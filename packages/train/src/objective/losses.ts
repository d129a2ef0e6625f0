import { DataError, type Datum, type Loss } from '@tiltyard/core'

import type { PolicyLoss } from '../config/options.ts'

/** Value, gradient and clipping of a loss over one datum. */
export interface LossTerms {
  /** Summed over the targets. */
  readonly loss: number
  /** dL/dp for each target, p being its log-probability under the weights. */
  readonly gradient: Float32Array
  /** Targets at which the ratio was clipped and the gradient changed by it. */
  readonly clipped: number
}

export const clipDefaults = {
  ppo: { clipLow: 0.8, clipHigh: 1.2 },
  cispo: { clipLow: 0, clipHigh: 4 },
} as const

/**
 * The losses that backends compute, written out: what a backend must agree with, and what metrics are made of. With p the
 * log-probability under the weights, q the recorded one, A the advantage, w the weight, r = exp(p − q); a sum over targets:
 *
 *     cross_entropy          −w·p                              dL/dp = −w
 *     importance_sampling    −r·A                                      −r·A
 *     ppo                    −min(r·A, clip(r, low, high)·A)           −r·A where the unclipped term is the minimum, else 0
 *     cispo                  −stopgrad(clip(r, low, high))·p·A         −clip(r, low, high)·A
 *     dro                    −(p·A − ½·beta·(p − q)²)                  −(A − beta·(p − q))
 *
 * Bounds are absolute ratios: ppo 0.8 and 1.2, cispo 0 and 4 by default. A mask, where the datum has one, multiplies each term.
 * @throws DataError when the datum lacks what the loss reads.
 */
export function lossTerms(datum: Datum, logprobs: ArrayLike<number>, loss: Loss): LossTerms {
  const length = datum.targets.length
  const gradient = new Float32Array(length)
  const term = termOf(datum, loss)
  let sum = 0
  let clipped = 0
  for (let at = 0; at < length; at += 1) {
    const weight = datum.mask?.[at] ?? 1
    if (weight === 0) continue
    const { value, slope, cut } = term(logprobs[at]!, at)
    sum += weight * value
    gradient[at] = weight * slope
    if (cut) clipped += 1
  }
  return { loss: sum, gradient, clipped }
}

interface Term {
  readonly value: number
  readonly slope: number
  readonly cut: boolean
}

function termOf(datum: Datum, loss: Loss): (p: number, at: number) => Term {
  if (loss.name === 'cross_entropy') {
    const weights = needed(datum, 'weights', loss)
    return (p, at) => ({ value: -weights[at]! * p, slope: -weights[at]!, cut: false })
  }
  const recorded = needed(datum, 'logprobs', loss)
  const advantages = needed(datum, 'advantages', loss)
  return (p, at) => policyTerm(loss, p, recorded[at]!, advantages[at]!)
}

function policyTerm(loss: PolicyLoss, p: number, q: number, advantage: number): Term {
  const ratio = Math.exp(p - q)
  if (loss.name === 'importance_sampling')
    return { value: -ratio * advantage, slope: -ratio * advantage, cut: false }
  if (loss.name === 'ppo') {
    const bounded = clip(ratio, loss, clipDefaults.ppo) * advantage
    if (bounded < ratio * advantage) return { value: -bounded, slope: 0, cut: true }
    return { value: -ratio * advantage, slope: -ratio * advantage, cut: false }
  }
  if (loss.name === 'cispo') {
    const slope = -clip(ratio, loss, clipDefaults.cispo) * advantage
    return { value: slope * p, slope, cut: slope !== -ratio * advantage }
  }
  const drift = p - q
  return {
    value: -(p * advantage - 0.5 * loss.beta * drift * drift),
    slope: -(advantage - loss.beta * drift),
    cut: false,
  }
}

interface Bounds {
  readonly clipLow?: number
  readonly clipHigh?: number
}

function clip(ratio: number, bounds: Bounds, defaults: Required<Bounds>): number {
  const { clipLow = defaults.clipLow, clipHigh = defaults.clipHigh } = bounds
  return Math.min(Math.max(ratio, clipLow), clipHigh)
}

function needed(
  datum: Datum,
  name: 'weights' | 'logprobs' | 'advantages',
  loss: Loss,
): Float32Array {
  const values = datum[name]
  if (values === undefined) throw new DataError(`${loss.name} needs ${name}, which the datum lacks`)
  return values
}
