import { DataError, type Datum, type Learner, type LossResult } from '@tiltyard/core'

/** A loss of your own: its value and dL/dp for each target of each datum, from the log-probabilities p under the weights. */
export type CustomLoss = (
  logprobs: readonly Float32Array[],
  data: readonly Datum[],
) => { readonly loss: number; readonly gradients: readonly ArrayLike<number>[] }

/**
 * Accumulates the gradient of any differentiable function of the targets' log-probabilities, with the losses that every
 * learner has: a forward pass gives p, your function gives dL/dp, and `cross_entropy` with the weights −dL/dp has exactly
 * that gradient. Costs one forward pass more than a built-in loss. For L = Σ p² at p = [−1, −2] the weights are [2, 4].
 * @throws DataError when a gradient has another length than its datum, or is not finite.
 */
export async function forwardBackwardCustom(
  learner: Learner,
  data: readonly Datum[],
  custom: CustomLoss,
): Promise<LossResult> {
  const plain = data.map(({ input, targets }) => ({
    input,
    targets,
    weights: new Float32Array(targets.length),
  }))
  const { logprobs } = await learner.forward(plain, { name: 'cross_entropy' })
  const { loss, gradients } = custom(logprobs, data)
  const weighted = plain.map((datum, index) => ({
    ...datum,
    weights: negated(gradients[index], datum.targets.length, index),
  }))
  const { metrics } = await learner.forwardBackward(weighted, { name: 'cross_entropy' })
  return { loss, logprobs, metrics }
}

function negated(
  gradient: ArrayLike<number> | undefined,
  length: number,
  index: number,
): Float32Array {
  if (gradient?.length !== length) {
    throw new DataError(
      `the custom loss gave ${gradient?.length ?? 'no'} gradients for datum ${index}, which has ${length} targets`,
    )
  }
  return Float32Array.from(gradient, (slope, at) => {
    if (!Number.isFinite(slope))
      throw new DataError(
        `the custom loss's gradient is ${slope} at target ${at} of datum ${index}`,
      )
    return -slope
  })
}
