import { MessageChannel } from 'node:worker_threads'

import { createEngine } from '../../src/worker/engine.ts'
import type { WorkerLike } from '../../src/worker/host.ts'
import type { ToWorker, WorkerSetup } from '../../src/worker/protocol.ts'

/** The engine in this thread, behind the same messages: what crosses is cloned or transferred as it is to a worker. */
export function inlineWorker(setup: WorkerSetup): WorkerLike {
  const { port1, port2 } = new MessageChannel()
  const engine = createEngine(setup, (message) => port2.postMessage(message))
  port2.on('message', (message: ToWorker) => engine.receive(message))
  const worker = {
    on(event: string, listener: (value: never) => void) {
      port1.on(event as 'message', listener as (value: unknown) => void)
      return worker
    },
    postMessage: port1.postMessage.bind(port1),
    ref: () => port1.ref(),
    unref: () => port1.unref(),
    async terminate() {
      port1.close()
      return 0
    },
  }
  return worker as unknown as WorkerLike
}
