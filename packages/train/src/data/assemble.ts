import type { Datum } from '@tiltyard/core'
import {
  sequencesOf,
  type PlayedEpisode,
  type SampledSpan,
  type TokenSequence,
} from '@tiltyard/rollout'

import { shiftTokens } from './shift.ts'

/** A datum for a policy loss, with what is known of it. All arrays have the length of its targets. */
export interface PolicyDatum {
  readonly datum: Datum
  /** 1 where the target was sampled and is trained. The one mask that loss, denominators and metrics go by. */
  readonly mask: Float32Array
  /** log-probability of each target when it was sampled, 0 where it was not; also of sampled targets that are context only. */
  readonly logprobs: Float32Array
  readonly advantages: Float32Array
  /** The sequence it was made of, and its place among the episode's. */
  readonly sequence: TokenSequence
  readonly index: number
  /** Targets with mask 1. */
  readonly trained: number
}

/**
 * An episode's tokens as data. A new datum begins only where a prompt does not start with the tokens before it; every sampled
 * id that may be trained is in exactly one datum, with the log-probability that it was sampled with. Sequences without any are left out.
 *
 * Two turns, prompt [1, 2, 3], reply [10, 11] at −0.5 and −0.25, then prompt [1, 2, 3, 10, 11, 20], reply [30, 31] at −1 and −2,
 * with advantage 0.5, give one datum: input [1, 2, 3, 10, 11, 20, 30], targets [2, 3, 10, 11, 20, 30, 31],
 * logprobs [0, 0, −0.5, −0.25, 0, −1, −2], advantages [0, 0, 0.5, 0.5, 0, 0.5, 0.5], mask [0, 0, 1, 1, 0, 1, 1].
 */
export function assembleEpisode(
  episode: Pick<PlayedEpisode, 'replies'>,
  advantage: number,
): readonly PolicyDatum[] {
  return sequencesOf(episode.replies).flatMap((sequence, index) => {
    const trained = sequence.spans.reduce((sum, span) => sum + trainedIn(span), 0)
    return trained === 0 ? [] : [assembleSequence(sequence, index, trained, advantage)]
  })
}

function assembleSequence(
  sequence: TokenSequence,
  index: number,
  trained: number,
  advantage: number,
): PolicyDatum {
  const { input, targets } = shiftTokens(sequence.chunks)
  const logprobs = new Float32Array(targets.length)
  const advantages = new Float32Array(targets.length)
  const mask = new Float32Array(targets.length)
  for (const { start, length, logprobs: sampled, trained: isTrained } of sequence.spans) {
    if (length === 0) continue
    // Target i is position i + 1; the first position of a sequence is nobody's target.
    const skipped = start === 0 ? 1 : 0
    logprobs.set(sampled.subarray(skipped), start + skipped - 1)
    if (!isTrained) continue
    advantages.fill(advantage, start + skipped - 1, start + length - 1)
    mask.fill(1, start + skipped - 1, start + length - 1)
  }
  const datum = { input, targets, logprobs, advantages, mask }
  return { datum, mask, logprobs, advantages, sequence, index, trained }
}

function trainedIn({
  start,
  length,
  trained,
}: Pick<SampledSpan, 'start' | 'length' | 'trained'>): number {
  return trained ? length - (start === 0 && length > 0 ? 1 : 0) : 0
}
