import { parentPort, workerData } from 'node:worker_threads'

import { createEngine } from './engine.ts'
import type { ToWorker, WorkerSetup } from './protocol.ts'

const port = parentPort
if (port === null)
  throw new Error('this module is the worker of localBackend; it is not to be imported')
const engine = createEngine(workerData as WorkerSetup, (message) => port.postMessage(message))
port.on('message', (message: ToWorker) => engine.receive(message))
