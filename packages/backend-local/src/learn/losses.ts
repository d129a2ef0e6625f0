import type { Loss, LossName } from '@tiltyard/core'

import type { GraphBuilder, Value } from '../graph/builder.ts'

/**
 * The losses of a forward-backward, each as its value and as −dL/dp. p is the log-probability of a target, q the recorded one,
 * A the advantage, w the weight, r = exp(p − q). All are sums over tokens and data; a mask multiplies each token's term.
 */

/** What a loss reads of one token. */
export interface TokenInputs<T> {
  readonly weight: T
  readonly advantage: T
  readonly recorded: T
}

export interface LossSettings<T> {
  readonly low: T
  readonly high: T
  readonly beta: T
}

/** Position in this list is the number by which the graph chooses. */
export const lossKinds = [
  'cross_entropy',
  'importance_sampling',
  'ppo',
  'cispo',
  'dro',
] as const satisfies readonly LossName[]

export function lossSettings(loss: Loss): LossSettings<number> {
  const unused = { low: 0, high: 0, beta: 0 }
  switch (loss.name) {
    case 'cross_entropy':
    case 'importance_sampling':
      return unused
    case 'ppo':
      return { ...unused, low: loss.clipLow ?? 0.8, high: loss.clipHigh ?? 1.2 }
    case 'cispo':
      return { ...unused, low: loss.clipLow ?? 0, high: loss.clipHigh ?? 4 }
    case 'dro':
      return { ...unused, beta: loss.beta }
    default:
      return loss satisfies never
  }
}

/** One token's term of the loss. */
export function tokenLoss(
  name: LossName,
  p: number,
  { weight, advantage, recorded }: TokenInputs<number>,
  { low, high, beta }: LossSettings<number>,
): number {
  const ratio = Math.exp(p - recorded)
  const clipped = Math.min(Math.max(ratio, low), high)
  switch (name) {
    case 'cross_entropy':
      return -weight * p
    case 'importance_sampling':
      return -ratio * advantage
    case 'ppo':
      return -Math.min(ratio * advantage, clipped * advantage)
    case 'cispo':
      return -clipped * p * advantage
    case 'dro':
      return -(p * advantage - 0.5 * beta * (p - recorded) ** 2)
    default:
      return name satisfies never
  }
}

/** −dL/dp for every token [N, 1]; `kind` is an int64 [1], settings are [1]. */
export function lossSlope(
  graph: GraphBuilder,
  kind: Value,
  p: Value,
  { weight, advantage, recorded }: TokenInputs<Value>,
  { low, high, beta }: LossSettings<Value>,
): Value {
  const { node } = graph
  const difference = node('Sub', [p, recorded])
  const ratio = node('Exp', [difference])
  const clipped = node('Min', [node('Max', [ratio, low]), high])
  const weighted = node('Mul', [ratio, advantage])
  const bounded = node('Mul', [clipped, advantage])
  const zero = graph.constant([1], new Float32Array(1))
  const slopes: Record<LossName, Value> = {
    cross_entropy: weight,
    importance_sampling: weighted,
    ppo: node('Where', [node('LessOrEqual', [weighted, bounded]), weighted, zero]),
    cispo: bounded,
    dro: node('Sub', [advantage, node('Mul', [difference, beta])]),
  }
  const all = node(
    'Concat',
    lossKinds.map((name) => slopes[name]),
    { attributes: { axis: 1 } },
  )
  return node('Gather', [all, kind], { attributes: { axis: 1 } })
}
