import { randomStream, tokenChunk, type Datum, type Loss } from '@tiltyard/core'

/** Small data for cases of samplers and learners: ids below `vocabulary`, the same again for the same seed. */
export function ids(length: number, seed: number, vocabulary: number): Int32Array {
  const random = randomStream(seed, 'testkit')
  return Int32Array.from({ length }, () => random.integer(vocabulary))
}

/** A datum with every array that any loss reads; its first quarter isn't trained, as a prompt isn't. */
export function datum(length: number, seed: number, vocabulary: number): Datum {
  const random = randomStream(seed, 'testkit-datum')
  const all = ids(length + 1, seed, vocabulary)
  const prompt = Math.floor(length / 4)
  const each = (value: () => number) =>
    Float32Array.from({ length }, (_, position) => {
      const drawn = value()
      return position < prompt ? 0 : drawn
    })
  return {
    input: [tokenChunk(all.slice(0, length))],
    targets: all.slice(1),
    weights: each(() => random.next() * 2 - 0.5),
    logprobs: each(() => -0.5 - 3 * random.next()),
    advantages: each(() => random.next() * 2 - 1),
  }
}

/** Only the arrays that a loss reads, so that strict wires take the datum. */
export function forLoss(
  { input, targets, weights, logprobs, advantages }: Datum,
  loss: Loss,
): Datum {
  if (loss.name === 'cross_entropy') return { input, targets, weights: weights! }
  return { input, targets, logprobs: logprobs!, advantages: advantages! }
}

/** As if sampled by a policy a little off the present one: ratios between 2/3 and 3/2, in and out of every clip. */
export function offPolicy(it: Datum, current: Float32Array, seed: number): Datum {
  const random = randomStream(seed, 'testkit-ratio')
  const bound = Math.log(1.5)
  return { ...it, logprobs: current.map((p) => p + bound * (2 * random.next() - 1)) }
}

/** The loss of one datum, from the log-probabilities under the weights; and its derivative by each of them. */
export function lossOf(
  { weights, logprobs, advantages, mask }: Datum,
  loss: Loss,
  current: Float32Array,
): { readonly loss: number; readonly slopes: Float32Array } {
  let sum = 0
  const slopes = Float32Array.from(current, (p, position) => {
    if (mask?.[position] === 0) return 0
    const [value, slope] =
      loss.name === 'cross_entropy'
        ? weighted(p, weights![position]!)
        : policyLoss(loss, p, logprobs![position]!, advantages![position]!)
    sum += value
    return slope
  })
  return { loss: sum, slopes }
}

type Pair = readonly [value: number, slope: number]

function weighted(p: number, weight: number): Pair {
  return [-weight * p, -weight]
}

function policyLoss(
  loss: Exclude<Loss, { name: 'cross_entropy' }>,
  p: number,
  q: number,
  advantage: number,
): Pair {
  const ratio = Math.exp(p - q)
  const plain = ratio * advantage
  if (loss.name === 'importance_sampling') return [-plain, -plain]
  if (loss.name === 'ppo') {
    const clipped = clip(ratio, loss.clipLow ?? 0.8, loss.clipHigh ?? 1.2) * advantage
    return [-Math.min(plain, clipped), plain <= clipped ? -plain : 0]
  }
  if (loss.name === 'cispo') {
    const factor = clip(ratio, loss.clipLow ?? 0, loss.clipHigh ?? 4) * advantage
    return [-factor * p, -factor]
  }
  const gap = p - q
  return [-(p * advantage - 0.5 * loss.beta * gap * gap), -(advantage - loss.beta * gap)]
}

function clip(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high)
}
