import { createPrompt, type Clock, type Datum, type Sampler } from '@tiltyard/core'

import type { AdvantageOptions, KlOptions } from '../config/options.ts'
import { assembleEpisode, type PolicyDatum } from '../data/assemble.ts'
import { klPenalties } from '../objective/kl.ts'
import type { EpisodeData, TrainingGroup } from './groups.ts'

/** Positions that are assembled at a stretch, some ten milliseconds; then others get their turn. */
const STRETCH = 100_000

/** The data of some groups, in the order of groups, members and sequences: what arrived first decides nothing. */
export async function assembleGroups(
  groups: readonly TrainingGroup[],
  clock: Clock,
): Promise<readonly EpisodeData[]> {
  const episodes: EpisodeData[] = []
  let assembled = 0
  for (const { judged } of groups) {
    for (const verdict of judged.verdicts) {
      if (!('advantage' in verdict)) continue
      const data = assembleEpisode(verdict.episode, verdict.advantage)
      episodes.push({ ...verdict, data })
      assembled += data.reduce((sum, { mask }) => sum + mask.length, 0)
      if (assembled < STRETCH) continue
      assembled = 0
      await clock.sleep(0)
    }
  }
  return episodes
}

/** log-probability of each target of a datum under a sampler's weights. */
export async function scoreDatum(
  { sequence }: PolicyDatum,
  sampler: Sampler,
  signal: AbortSignal,
): Promise<Float32Array> {
  const scored = await sampler.logprobs(createPrompt(sequence.chunks), { signal })
  return scored.subarray(1)
}

/**
 * Adds the penalty of a reference to the advantages, in place.
 * @returns the metric `kl_policy_base`.
 */
export async function addKlPenalties(
  data: readonly PolicyDatum[],
  reference: Sampler,
  options: KlOptions,
  signal: AbortSignal,
): Promise<number> {
  const scored = await Promise.all(
    data.map(async (datum) => ({
      mask: datum.mask,
      logprobs: datum.logprobs,
      reference: await scoreDatum(datum, reference, signal),
    })),
  )
  const { penalties, mean } = klPenalties(scored, options)
  for (const [index, { advantages }] of data.entries()) {
    const penalty = penalties[index]!
    for (let at = 0; at < advantages.length; at += 1) advantages[at]! += penalty[at]!
  }
  return mean
}

/**
 * Spreads an episode's advantages over its tokens, in place: as they are, divided by the tokens that it trains (in all of its
 * data), or by a constant.
 */
export function scaleByLength(
  { data }: EpisodeData,
  length: NonNullable<AdvantageOptions['length']>,
): void {
  if (length === 'sum') return
  const divisor = length === 'mean' ? data.reduce((sum, { trained }) => sum + trained, 0) : length
  for (const { advantages } of data)
    for (let at = 0; at < advantages.length; at += 1) advantages[at]! /= divisor
}

/** A datum as the learner gets it: with a mask only where the learner takes one. */
export function wireDatum({ datum }: PolicyDatum, mask: boolean): Datum {
  if (mask) return datum
  const { mask: _, ...rest } = datum
  return rest
}
