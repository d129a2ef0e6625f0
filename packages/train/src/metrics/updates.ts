import type { Loss } from '@tiltyard/core'

import type { PolicyDatum } from '../data/assemble.ts'
import { logprobGap } from '../objective/kl.ts'
import { lossTerms } from '../objective/losses.ts'
import type { UpdateResult } from '../optimize/update.ts'

/** Some of a step's data with what the learner answered. */
export interface TrainedData {
  readonly data: readonly PolicyDatum[]
  readonly result: UpdateResult
}

/**
 * What a step's updates tell:
 *
 * - `optim/loss`: the loss as the backend sums it; `optim/loss_per_token`: divided by the trained tokens.
 * - `optim/kl_sample_train_v1`, `_v2`, `optim/logprob_diff_mean`, `_max`: how far the learner's log-probabilities lie from the
 *   sampled ones over trained tokens (`logprobGap`). From each part's own forward pass: after the first update of a step p has moved.
 * - `optim/entropy`: −mean(q) over trained tokens, a surprisal, not the distribution's entropy.
 * - `optim/clipped_frac`: share of trained tokens whose ratio the loss clipped.
 * - `data/…`: data, positions, trained tokens, and data beyond one per episode (`splits`).
 * - `learner/…`: what the backend told besides.
 */
export function updateMetrics(
  parts: readonly TrainedData[],
  loss: Loss,
): Readonly<Record<string, number>> {
  const data = parts.flatMap((part) => part.data)
  const logprobs = parts.flatMap(({ result }) => result.logprobs)
  const positions = data.reduce((sum, { mask }) => sum + mask.length, 0)
  const counts = {
    'data/datums': data.length,
    'data/tokens': positions,
    'data/splits': data.filter(({ index }) => index > 0).length,
    'data/trained_tokens': data.reduce((sum, { trained }) => sum + trained, 0),
  }
  if (data.length === 0) return counts
  const gap = logprobGap(data, logprobs)
  const total = parts.reduce((sum, { result }) => sum + result.loss, 0)
  const backend = Object.assign({}, ...parts.map(({ result }) => result.metrics)) as Readonly<
    Record<string, number>
  >
  return {
    ...counts,
    ...Object.fromEntries(
      Object.entries(backend).map(([name, value]) => [`learner/${name}`, value]),
    ),
    'optim/loss': total,
    'optim/loss_per_token': total / gap.tokens,
    'optim/kl_sample_train_v1': gap.v1,
    'optim/kl_sample_train_v2': gap.v2,
    'optim/logprob_diff_mean': gap.meanAbs,
    'optim/logprob_diff_max': gap.maxAbs,
    'optim/entropy': -meanOverMask(data),
    ...clipping(data, logprobs, loss, gap.tokens),
  }
}

function meanOverMask(data: readonly PolicyDatum[]): number {
  let sum = 0
  let count = 0
  for (const { mask, logprobs } of data) {
    for (let at = 0; at < mask.length; at += 1) {
      if (mask[at] === 0) continue
      sum += logprobs[at]!
      count += 1
    }
  }
  return sum / count
}

function clipping(
  data: readonly PolicyDatum[],
  logprobs: readonly Float32Array[],
  loss: Loss,
  tokens: number,
): Readonly<Record<string, number>> {
  if (loss.name !== 'ppo' && loss.name !== 'cispo') return {}
  const clipped = data.reduce(
    (sum, { datum }, index) => sum + lossTerms(datum, logprobs[index]!, loss).clipped,
    0,
  )
  return { 'optim/clipped_frac': clipped / tokens }
}
