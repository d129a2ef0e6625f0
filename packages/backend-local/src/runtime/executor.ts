import type { Graph } from '../onnx/model.ts'

/** A tensor on its way into a graph. The data is read while the graph runs and kept by the caller. */
export interface Feed {
  readonly data: Float32Array | BigInt64Array
  readonly shape: readonly number[]
}

export type Feeds = Readonly<Record<string, Feed>>
export type Results = Readonly<Record<string, Float32Array>>

/** A graph made ready to run. */
export interface Program {
  /** Every output by its name, in memory of its own. */
  run(feeds: Feeds): Promise<Results>
  release(): Promise<void>
}

export type ExecutorName = 'onnxruntime-node' | 'onnxruntime-web'

/** What runs graphs. */
export interface Executor {
  readonly name: ExecutorName
  readonly version: string
  readonly threads: number
  /** Without `threads`, those of the executor. */
  load(graph: Graph, options?: { readonly threads?: number }): Promise<Program>
}

export function floats(data: Float32Array, shape: readonly number[]): Feed {
  return { data, shape }
}

export function wholes(
  values: ArrayLike<number>,
  shape: readonly number[] = [values.length],
): Feed {
  const data = new BigInt64Array(values.length)
  for (let index = 0; index < values.length; index += 1) data[index] = BigInt(values[index]!)
  return { data, shape }
}
