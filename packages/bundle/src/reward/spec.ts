import type { RewardRule } from '@tiltyard/core'

import type { RewardSpec } from '../load/manifest.ts'
import { namedStep, onlyStep, productOf, threshold, weightedSum } from './rules.ts'

/**
 * The rule that a manifest or recipe writes as data: the name of a step, `weighted` (the steps' own weights), a weighted
 * sum, a product or a threshold. Absent: the only step.
 */
export function rewardRule(
  spec: RewardSpec | undefined,
  steps: readonly { readonly name: string; readonly weight: number }[],
): RewardRule {
  if (spec === undefined) return onlyStep()
  if (spec === 'weighted')
    return weightedSum(Object.fromEntries(steps.map(({ name, weight }) => [name, weight])))
  if (typeof spec === 'string') return namedStep(spec)
  if ('weighted' in spec) return weightedSum(spec.weighted)
  if ('product' in spec) return productOf(spec.product)
  return threshold(spec.threshold.step, spec.threshold.least)
}
