/** AdamW with bias correction and decoupled decay, over tensors by name. */

export interface AdamSettings {
  readonly learningRate: number
  readonly beta1: number
  readonly beta2: number
  readonly epsilon: number
  readonly weightDecay: number
}

/** First and second moments of one tensor. */
export interface Moments {
  readonly first: Float32Array
  readonly second: Float32Array
}

export function zeroMoments(length: number): Moments {
  return { first: new Float32Array(length), second: new Float32Array(length) }
}

/**
 * Changes `weights` and `moments` in place. `step` counts from 1; `scale` multiplies the gradient first.
 *
 * m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − lr·(m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + decay·w)
 */
export function adamUpdate(
  weights: Float32Array,
  gradient: Float32Array,
  { first, second }: Moments,
  { learningRate, beta1, beta2, epsilon, weightDecay }: AdamSettings,
  step: number,
  scale: number,
): void {
  const correction1 = 1 - beta1 ** step
  const correction2 = 1 - beta2 ** step
  for (let at = 0; at < weights.length; at += 1) {
    const g = gradient[at]! * scale
    const m = beta1 * first[at]! + (1 - beta1) * g
    const v = beta2 * second[at]! + (1 - beta2) * g * g
    first[at] = m
    second[at] = v
    const update =
      m / correction1 / (Math.sqrt(v / correction2) + epsilon) + weightDecay * weights[at]!
    weights[at]! -= learningRate * update
  }
}

/** Root of the sum of squares over all tensors. */
export function globalNorm(gradients: Iterable<Float32Array>): number {
  let squares = 0
  for (const gradient of gradients) {
    for (let at = 0; at < gradient.length; at += 1) squares += gradient[at]! * gradient[at]!
  }
  return Math.sqrt(squares)
}
