import type { Value } from '../graph/builder.ts'
import type { Operations } from '../graph/operations.ts'
import { normals, type ParameterInfo, parametersOf, type Tensors } from './parameters.ts'
import type { ModelShape } from './shape.ts'

/** Low-rank adapters on all seven projections: W + (alpha / rank) · A · B, with A[in, rank] and B[rank, out]. */
export interface LoraShape {
  readonly rank: number
  readonly alpha: number
}

const adapterA = (name: string): string => name.replace(/weight$/, 'lora_A.weight')
const adapterB = (name: string): string => name.replace(/weight$/, 'lora_B.weight')

/** What the optimizer changes: everything, or the adapters. */
export function trainableOf(
  shape: ModelShape,
  lora: LoraShape | undefined,
): readonly ParameterInfo[] {
  const all = parametersOf(shape)
  if (lora === undefined) return all
  return all.flatMap(({ name, shape: sizes, kind }) => {
    if (kind !== 'projection') return []
    const [from, to] = sizes as readonly [number, number]
    return [
      { name: adapterA(name), shape: [from, lora.rank], kind },
      { name: adapterB(name), shape: [lora.rank, to], kind },
    ]
  })
}

/** A normal with deviation 1/√in, B zero: the first update starts from the model itself. */
export function initialAdapters(
  shape: ModelShape,
  lora: LoraShape,
  seed: number,
): Map<string, Float32Array> {
  return new Map(
    trainableOf(shape, lora).map(({ name, shape: [from, to] }, index) => {
      const length = from! * to!
      return [
        name,
        name.includes('lora_A')
          ? normals(length, from! ** -0.5, seed, index)
          : new Float32Array(length),
      ]
    }),
  )
}

/** A parameter as the graph uses it: the update is added to the weights, which costs no work per token. */
export function adaptedWeight(
  op: Operations,
  inputs: ReadonlyMap<string, Value>,
  name: string,
  lora: LoraShape | undefined,
): Value {
  const base = inputs.get(name)!
  const a = inputs.get(adapterA(name))
  const b = inputs.get(adapterB(name))
  if (lora === undefined || a === undefined || b === undefined) return base
  return op.add(base, op.product(a, b, lora.alpha / lora.rank))
}

/** The model with its adapters merged in; what has none is shared, not copied. */
export function mergeAdapters(
  shape: ModelShape,
  base: Tensors,
  adapters: Tensors,
  { rank, alpha }: LoraShape,
): Map<string, Float32Array> {
  return new Map(
    parametersOf(shape).map(({ name, shape: sizes }) => {
      const weights = base.get(name)!
      const a = adapters.get(adapterA(name))
      const b = adapters.get(adapterB(name))
      if (a === undefined || b === undefined) return [name, weights]
      const merged = weights.slice()
      const columns = sizes[1]!
      for (let row = 0; row < sizes[0]!; row += 1) {
        for (let inner = 0; inner < rank; inner += 1) {
          const factor = (a[row * rank + inner]! * alpha) / rank
          for (let column = 0; column < columns; column += 1) {
            merged[row * columns + column]! += factor * b[inner * columns + column]!
          }
        }
      }
      return [name, merged]
    }),
  )
}
