import type { GraphBuilder, Value } from './builder.ts'

export type ValueGradient = readonly [value: Value, gradient: Value]

/** Adds the backward nodes of one operation: from the gradients of its outputs (absent where none flows) to those of its inputs. */
export type Backward = (gradients: readonly (Value | undefined)[]) => readonly ValueGradient[]

/** Remembers how to differentiate each operation, in the order of their adding. */
export interface Tape {
  record(outputs: readonly Value[], backward: Backward): void
  /** Adds the backward pass to the graph, from gradients of some values to those of all they were made from. */
  gradients(seeds: readonly ValueGradient[]): (value: Value) => Value | undefined
}

export function createTape(graph: GraphBuilder): Tape {
  const steps: { readonly outputs: readonly Value[]; readonly backward: Backward }[] = []
  return {
    record(outputs, backward) {
      steps.push({ outputs, backward })
    },
    gradients(seeds) {
      const known = new Map<string, Value>()
      const add = ([{ name }, gradient]: ValueGradient) => {
        const other = known.get(name)
        known.set(name, other === undefined ? gradient : graph.node('Add', [other, gradient]))
      }
      seeds.forEach(add)
      for (const { outputs, backward } of steps.toReversed()) {
        const arriving = outputs.map(({ name }) => known.get(name))
        if (arriving.some((gradient) => gradient !== undefined)) backward(arriving).forEach(add)
      }
      return ({ name }) => known.get(name)
    },
  }
}
