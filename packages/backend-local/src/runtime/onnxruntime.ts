import type * as Runtime from 'onnxruntime-web'

import { encodeModel } from '../onnx/model.ts'
import type { Executor, ExecutorName, Feed } from './executor.ts'

export type ExecutorChoice = 'auto' | 'native' | 'web'

export interface ExecutorOptions {
  readonly choice: ExecutorChoice
  readonly threads: number
}

/**
 * ONNX Runtime: the native build, or the WebAssembly one where that doesn't load.
 * @throws the load error, with its cause, when the chosen build doesn't load.
 */
export async function loadExecutor({ choice, threads }: ExecutorOptions): Promise<Executor> {
  if (choice === 'web') return await web(threads)
  try {
    return await native(threads)
  } catch (cause) {
    if (choice === 'native') {
      throw new Error(
        'onnxruntime-node does not load here; install it for this platform, or choose executor "auto" or "web"',
        { cause },
      )
    }
    return await web(threads)
  }
}

async function native(threads: number): Promise<Executor> {
  const runtime = (await import('onnxruntime-node')) as unknown as typeof Runtime
  return executor('onnxruntime-node', runtime.env.versions.node ?? 'unknown', runtime, threads)
}

async function web(threads: number): Promise<Executor> {
  const runtime = await import('onnxruntime-web')
  // One setting for all sessions of this build, read when the first is made.
  runtime.env.wasm.numThreads = threads
  return executor('onnxruntime-web', runtime.env.versions.web ?? 'unknown', runtime, threads)
}

function executor(
  name: ExecutorName,
  version: string,
  runtime: typeof Runtime,
  threads: number,
): Executor {
  const { InferenceSession, Tensor } = runtime
  const tensor = ({ data, shape }: Feed) =>
    data instanceof Float32Array
      ? new Tensor('float32', data, shape)
      : new Tensor('int64', data, shape)
  return {
    name,
    version,
    threads,
    async load(graph, options = {}) {
      const session = await InferenceSession.create(encodeModel(graph), {
        executionProviders: [name === 'onnxruntime-node' ? 'cpu' : 'wasm'],
        intraOpNumThreads: options.threads ?? threads,
        interOpNumThreads: 1,
        executionMode: 'sequential',
        // Patterns are kept per shape; ours vary, and they cost half of the memory again.
        enableMemPattern: false,
        logSeverityLevel: 3,
        // Spinning threads make two threads slower than one when the second core is busy.
        extra: { session: { intra_op: { allow_spinning: '0' } } },
      })
      return {
        async run(feeds) {
          // The WebAssembly build refuses inputs that a graph doesn't have; the native one ignores them.
          const tensors = Object.fromEntries(
            session.inputNames.map((key) => [key, tensor(feeds[key]!)]),
          )
          const results = await session.run(tensors)
          return Object.fromEntries(
            Object.entries(results).map(([key, { data }]) => [key, data as Float32Array]),
          )
        },
        release: () => session.release(),
      }
    },
  }
}
