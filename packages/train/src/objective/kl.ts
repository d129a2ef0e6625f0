import type { KlOptions } from '../config/options.ts'

/** A datum as the penalty sees it; all arrays have one length. */
export interface ScoredDatum {
  /** 1 where the target was sampled and is trained. */
  readonly mask: ArrayLike<number>
  /** log-probability q of each target when it was sampled, in nats. */
  readonly logprobs: ArrayLike<number>
  /** log-probability b of each target under the reference, in nats; only read where the mask is 1. */
  readonly reference: ArrayLike<number>
}

export interface KlPenalties {
  /** What is added to the advantages of each datum. 0 where the mask is 0. */
  readonly penalties: readonly Float32Array[]
  /** Mean of q − b over the masked targets of all data; 0 when there is none. The metric `kl_policy_base`. */
  readonly mean: number
}

/**
 * The pull towards a reference. With d_t = q_t − b_t over the targets that are trained:
 *
 *     k_t = coefficient · (mean(d) − d_t)        centered (default); without centering: k_t = −coefficient · d_t
 *     A_t += Σ_{s ≥ t} discount^(s − t) · k_s    s over the targets that are trained
 *
 * `s − t` counts positions of the sequence, or trained targets only (`discountOver: 'sampled'`). A target that is not trained
 * never gets a penalty. The mean is over all data of the step, so the penalty does not depend on how the step is split.
 */
export function klPenalties(
  data: readonly ScoredDatum[],
  options: Omit<KlOptions, 'reference'>,
): KlPenalties {
  const { coefficient, discount = 0, discountOver = 'positions', centered = true } = options
  const mean = meanDifference(data)
  const baseline = centered ? mean : 0
  const penalties = data.map(({ mask, logprobs, reference }) => {
    const penalty = new Float32Array(mask.length)
    let later = 0
    for (let at = mask.length - 1; at >= 0; at -= 1) {
      if (mask[at] === 0) {
        if (discountOver === 'positions') later *= discount
        continue
      }
      later = coefficient * (baseline - (logprobs[at]! - reference[at]!)) + discount * later
      penalty[at] = later
    }
    return penalty
  })
  return { penalties, mean }
}

function meanDifference(data: readonly ScoredDatum[]): number {
  let sum = 0
  let count = 0
  for (const { mask, logprobs, reference } of data) {
    for (let at = 0; at < mask.length; at += 1) {
      if (mask[at] === 0) continue
      sum += logprobs[at]! - reference[at]!
      count += 1
    }
  }
  return count === 0 ? 0 : sum / count
}

/** How far the new log-probabilities p lie from the recorded ones q, over the targets that are trained. */
export interface LogprobGap {
  readonly tokens: number
  /** mean(q − p): the first-order estimate of KL(sampler ‖ learner). */
  readonly v1: number
  /** ½ · mean((q − p)²): the second-order one. */
  readonly v2: number
  /** mean |q − p| */
  readonly meanAbs: number
  /** max |q − p| */
  readonly maxAbs: number
}

/** Compares data with log-probabilities of the same targets under other weights. All zero when nothing is trained. */
export function logprobGap(
  data: readonly { readonly mask: ArrayLike<number>; readonly logprobs: ArrayLike<number> }[],
  other: readonly ArrayLike<number>[],
): LogprobGap {
  let tokens = 0
  let sum = 0
  let squares = 0
  let abs = 0
  let maxAbs = 0
  data.forEach(({ mask, logprobs }, index) => {
    const p = other[index]!
    for (let at = 0; at < mask.length; at += 1) {
      if (mask[at] === 0) continue
      const difference = logprobs[at]! - p[at]!
      tokens += 1
      sum += difference
      squares += difference * difference
      abs += Math.abs(difference)
      if (!(Math.abs(difference) <= maxAbs)) maxAbs = Math.abs(difference)
    }
  })
  if (tokens === 0) return { tokens, v1: 0, v2: 0, meanAbs: 0, maxAbs: 0 }
  return { tokens, v1: sum / tokens, v2: squares / tokens / 2, meanAbs: abs / tokens, maxAbs }
}
