import type { Datum, Loss } from '@tiltyard/core'

/** The value of a loss from the log-probabilities under the weights; for services that don't tell it. */
export function lossValue(
  data: readonly Datum[],
  loss: Loss,
  current: readonly Float32Array[],
): number {
  return data.reduce((sum, datum, index) => sum + ofDatum(datum, loss, current[index]!), 0)
}

function ofDatum(
  { weights, logprobs, advantages }: Datum,
  loss: Loss,
  current: Float32Array,
): number {
  return current.reduce((sum, p, at) => {
    if (loss.name === 'cross_entropy') return sum - weights![at]! * p
    const advantage = advantages![at]!
    const gap = p - logprobs![at]!
    if (loss.name === 'dro') return sum - (p * advantage - 0.5 * loss.beta * gap * gap)
    const ratio = Math.exp(gap)
    if (loss.name === 'importance_sampling') return sum - ratio * advantage
    if (loss.name === 'ppo') {
      const clipped = clip(ratio, loss.clipLow ?? 0.8, loss.clipHigh ?? 1.2)
      return sum - Math.min(ratio * advantage, clipped * advantage)
    }
    return sum - clip(ratio, loss.clipLow ?? 0, loss.clipHigh ?? 4) * p * advantage
  }, 0)
}

function clip(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}
