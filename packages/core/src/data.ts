import { DataError } from './errors.ts'
import { chunksLength, type PromptChunk } from './tokens.ts'

/**
 * One token sequence for training. Position i holds the input token i; `targets[i]` is the token that follows it, and
 * `logprobs[i]`, `advantages[i]`, `mask[i]`, `weights[i]` belong to that target. All arrays have the length of the input.
 */
export interface Datum {
  readonly input: readonly PromptChunk[]
  /** Next tokens; 0 where the next position is an image. */
  readonly targets: Int32Array
  /** `cross_entropy`: weight of each target. */
  readonly weights?: Float32Array
  /** Policy losses: log-probability with which each target was sampled, in nats; 0 where it wasn't. */
  readonly logprobs?: Float32Array
  /** Policy losses: advantage of each target; 0 where it isn't trained. */
  readonly advantages?: Float32Array
  /** 1 where the target was sampled and is trained, 0 elsewhere. A capability: the Tinker wire has no mask. */
  readonly mask?: Float32Array
}

/** A loss by name, with its settings. Formulas: p is the log-probability under the weights, q the recorded one, A the advantage, r = exp(p − q). Sums over tokens and data. */
export type Loss =
  /** −Σ w·p */
  | { readonly name: 'cross_entropy' }
  /** −Σ r·A */
  | { readonly name: 'importance_sampling' }
  /** −Σ min(r·A, clip(r, low, high)·A); bounds are absolute ratios, defaults 0.8 and 1.2 */
  | { readonly name: 'ppo'; readonly clipLow?: number; readonly clipHigh?: number }
  /** −Σ stopgrad(clip(r, low, high))·p·A; defaults 0 and 4 */
  | { readonly name: 'cispo'; readonly clipLow?: number; readonly clipHigh?: number }
  /** −Σ (p·A − ½·beta·(p − q)²) */
  | { readonly name: 'dro'; readonly beta: number }

export type LossName = Loss['name']

export const lossNames = [
  'cross_entropy',
  'importance_sampling',
  'ppo',
  'cispo',
  'dro',
] as const satisfies readonly LossName[]

/** Positions of a datum. */
export function datumLength(datum: Datum): number {
  return datum.targets.length
}

/** Targets that a loss acts on: mask if given, else non-zero weights or advantages. */
export function trainedTokens(datum: Datum): number {
  const marks = datum.mask ?? datum.weights ?? datum.advantages
  if (marks === undefined) return 0
  let count = 0
  for (const mark of marks) if (mark !== 0) count += 1
  return count
}

/**
 * Checks what a loss needs: one length, finite numbers, the arrays that the loss reads.
 * @throws DataError naming the array, the position and the fault. Nothing is padded or repaired.
 */
export function checkDatum(datum: Datum, loss: Loss): void {
  const length = datum.targets.length
  const inputs = chunksLength(datum.input)
  if (length === 0) throw new DataError('a datum needs at least one position')
  if (inputs !== length) throw new DataError(`input has ${inputs} positions, targets has ${length}`)
  const needed =
    loss.name === 'cross_entropy' ? (['weights'] as const) : (['logprobs', 'advantages'] as const)
  for (const name of needed) {
    if (datum[name] === undefined)
      throw new DataError(`${loss.name} needs ${name}, which the datum lacks`)
  }
  for (const name of ['weights', 'logprobs', 'advantages', 'mask'] as const) {
    const values = datum[name]
    if (values === undefined) continue
    if (values.length !== length)
      throw new DataError(`${name} has ${values.length} positions, targets has ${length}`)
    const bad = firstNotFinite(values)
    if (bad !== -1)
      throw new DataError(`${name}[${bad}] is ${values[bad]}; only finite numbers are trained`)
  }
}

/** A loop: batches have millions of numbers, and a callback each costs several times as much. */
function firstNotFinite(values: Float32Array): number {
  for (let index = 0; index < values.length; index += 1)
    if (!Number.isFinite(values[index])) return index
  return -1
}
