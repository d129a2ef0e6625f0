import { Worker } from 'node:worker_threads'

import { asError, StateError, TiltyardError, type WaitOptions } from '@tiltyard/core'

import type { FromWorker, RequestName, Requests, ToWorker, WorkerSetup } from './protocol.ts'

/** The worker as its callers see it. It starts with the first request. */
export interface Host {
  /** Rejects with the signal's reason as soon as it aborts; the worker stops soon after. */
  request<Name extends RequestName>(
    name: Name,
    input: Requests[Name]['in'],
    options?: WaitOptions & {
      readonly transfer?: readonly ArrayBuffer[]
      readonly onToken?: OnToken
    },
  ): Promise<Requests[Name]['out']>
  /** Ends the worker; what is under way is rejected. Idempotent. */
  close(): Promise<void>
}

export type OnToken = (index: number, token: number, logprob: number) => void

interface Pending {
  readonly resolve: (output: never) => void
  readonly reject: (error: Error) => void
  readonly onToken: OnToken | undefined
}

/** What the host needs of a `Worker`; tests run the engine without a thread. */
export type WorkerLike = Pick<Worker, 'on' | 'postMessage' | 'ref' | 'unref' | 'terminate'>

export function createHost(
  setup: WorkerSetup,
  startThread: (setup: WorkerSetup) => WorkerLike,
): Host {
  let worker: WorkerLike | undefined
  let closed = false
  let count = 0
  const pending = new Map<number, Pending>()

  const settle = (id: number): Pending | undefined => {
    const call = pending.get(id)
    pending.delete(id)
    // Only work under way keeps the process alive.
    if (pending.size === 0) worker?.unref()
    return call
  }
  const failAll = (error: Error) => {
    for (const id of pending.keys()) settle(id)?.reject(error)
  }
  const receive = (message: FromWorker) => {
    if (message.type === 'token') {
      pending.get(message.id)?.onToken?.(message.index, message.token, message.logprob)
    } else if (message.type === 'result') {
      settle(message.id)?.resolve(message.output as never)
    } else {
      settle(message.id)?.reject(new TiltyardError(message.code, message.message))
    }
  }
  const start = (): WorkerLike => {
    const started = startThread(setup)
    started.on('message', receive)
    const died = (why: string, cause?: unknown) => {
      if (worker === started) worker = undefined
      if (!closed)
        failAll(
          new TiltyardError(
            'BACKEND',
            `the worker of the embedded backend ${why}; its weights are gone, go on from a checkpoint`,
            { cause },
          ),
        )
    }
    started.on('error', (error) => died(`failed: ${error.message}`, error))
    started.on('exit', (code) => died(`ended with code ${code}`))
    return started
  }

  return {
    async request(name, input, { signal, transfer = [], onToken } = {}) {
      if (closed) throw new StateError('the backend is closed')
      signal?.throwIfAborted()
      worker ??= start()
      const running = worker
      count += 1
      const id = count
      running.ref()
      return await new Promise((resolve, reject) => {
        const abort = () => {
          if (settle(id) === undefined) return
          // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, no window
          running.postMessage({ type: 'cancel', id } satisfies ToWorker)
          reject(asError(signal?.reason))
        }
        const done = () => signal?.removeEventListener('abort', abort)
        signal?.addEventListener('abort', abort, { once: true })
        pending.set(id, {
          resolve: (output) => {
            done()
            resolve(output)
          },
          reject: (error) => {
            done()
            reject(error)
          },
          onToken,
        })
        running.postMessage({ type: 'request', id, name, input } satisfies ToWorker, [...transfer])
      })
    },
    async close() {
      closed = true
      failAll(new StateError('the backend was closed'))
      await worker?.terminate()
    },
  }
}

/** The thread, a file beside this one once built. */
export function startWorker(setup: WorkerSetup): Worker {
  return new Worker(new URL('worker.js', import.meta.url), {
    workerData: setup,
    name: 'tiltyard-local',
  })
}
