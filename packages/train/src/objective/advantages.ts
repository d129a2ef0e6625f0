import type { AdvantageOptions } from '../config/options.ts'

/**
 * Advantages of a group's members from their rewards R, in the same order. Computed in float64.
 *
 * - baseline `mean`: A_i = R_i − mean(R). `[1, 0, 0, 1]` gives `[0.5, −0.5, −0.5, 0.5]`.
 * - baseline `leave_one_out`: A_i = R_i − mean of the others = n/(n−1) · (R_i − mean(R)). `[1, 0, 0]` gives `[1, −0.5, −0.5]`.
 * - baseline `none`: A_i = R_i.
 * - scale `std`: the above, divided by the population standard deviation √(Σ(R_i − mean(R))²/n). `[1, 0, 0, 1]` gives `[1, −1, −1, 1]`.
 *
 * A group of one, and one whose rewards are constant, has advantage 0 under a baseline, and under `std` always.
 */
export function groupAdvantages(
  rewards: readonly number[],
  options: AdvantageOptions = {},
): readonly number[] {
  const { baseline = 'mean', scale = 'none' } = options
  const n = rewards.length
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / n
  const constant = isConstant(rewards)
  const centred = rewards.map((reward) => {
    if (baseline === 'none') return reward
    if (constant) return 0
    return baseline === 'mean' ? reward - mean : ((reward - mean) * n) / (n - 1)
  })
  if (scale === 'none') return centred
  if (constant) return centred.map(() => 0)
  const deviation = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / n)
  return centred.map((advantage) => advantage / deviation)
}

/** Whether nothing can be learned from comparing: all rewards are equal as float32, in which they train. True for one or none. */
export function isConstant(rewards: readonly number[]): boolean {
  return rewards.every((reward) => Math.fround(reward) === Math.fround(rewards[0]!))
}
