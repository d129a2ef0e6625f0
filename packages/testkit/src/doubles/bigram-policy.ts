import { randomStream, type Datum, type Loss, type SampleRequest } from '@tiltyard/core'

import { lossOf } from '../policy-data.ts'

/** Table of logits, row by previous id: exact, small, quick. Gradients are written down, not approximated. */
export interface Table {
  readonly size: number
  readonly values: Float64Array
}

export function randomTable(size: number, seed: number): Table {
  const random = randomStream(seed, 'bigram')
  return { size, values: Float64Array.from({ length: size * size }, () => 4 * random.next() - 2) }
}

/** Text of the double's ids: printable ASCII from the space on. */
export function bigramText(ids: Iterable<number>): string {
  return [...ids].map((id) => String.fromCharCode(32 + id)).join('')
}

/** log-probabilities of every id after `previous`. */
export function logSoftmax({ size, values }: Table, previous: number): Float64Array {
  const row = values.subarray(previous * size, (previous + 1) * size)
  const top = row.reduce((most, value) => Math.max(most, value), -Infinity)
  const norm = top + Math.log(row.reduce((sum, value) => sum + Math.exp(value - top), 0))
  return Float64Array.from(row, (value) => value - norm)
}

/** log-probabilities of the targets of a datum, loss, and gradient by the table's values. */
export function differentiate(
  table: Table,
  inputs: Int32Array,
  datum: Datum,
  loss: Loss,
): { readonly logprobs: Float32Array; readonly loss: number; readonly gradient: Float64Array } {
  const rows = [...inputs].map((previous) => logSoftmax(table, previous))
  const logprobs = Float32Array.from(datum.targets, (target, position) => rows[position]![target]!)
  const { loss: value, slopes } = lossOf(datum, loss, logprobs)
  const gradient = new Float64Array(table.values.length)
  for (const [position, row] of rows.entries()) {
    const slope = slopes[position]!
    const at = inputs[position]! * table.size
    for (let id = 0; id < table.size; id += 1) gradient[at + id]! -= slope * Math.exp(row[id]!)
    gradient[at + datum.targets[position]!]! += slope
  }
  return { logprobs, loss: value, gradient }
}

/** One id by the request's settings, from a uniform number in [0, 1). */
export function draw(row: Float64Array, request: SampleRequest, uniform: number): number {
  const { temperature = 1, topK, topP = 1 } = request
  const ranked = [...row.keys()].toSorted((a, b) => row[b]! - row[a]! || a - b)
  if (temperature === 0) return ranked[0]!
  const kept = topK === undefined ? ranked : ranked.slice(0, topK)
  const weights = kept.map((id) => Math.exp((row[id]! - row[kept[0]!]!) / temperature))
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  let nucleus = 0
  let count = 0
  while (count < kept.length && (count === 0 || nucleus < topP)) {
    nucleus += weights[count]! / total
    count += 1
  }
  let left = uniform * nucleus * total
  for (let index = 0; index < count; index += 1) {
    left -= weights[index]!
    if (left < 0) return kept[index]!
  }
  return kept[count - 1]!
}
