import { EventEmitter, getEventListeners } from 'node:events'

import { expect, test } from 'vitest'

import { modelShapeSchema } from '../../src/model/shape.ts'
import { createHost, type WorkerLike } from '../../src/worker/host.ts'
import type { FromWorker, ToWorker, WorkerSetup } from '../../src/worker/protocol.ts'
import { tinyShape } from '../support/tiny.ts'

const setup: WorkerSetup = {
  models: {
    tiny: {
      shape: modelShapeSchema.parse(tinyShape),
      initial: { seed: 0, deviation: 0.02, queryKeyNorm: 1 },
    },
  },
  folder: 'checkpoints',
  executor: 'auto',
  threads: 1,
  microBatchTokens: 512,
  maxRows: 8,
  cacheBytes: 1,
  spellings: undefined,
}

/** A host whose workers answer nothing by themselves. */
function scriptedHost() {
  const workers: EventEmitter[] = []
  const sent: ToWorker[] = []
  const holds = { process: false }
  const host = createHost(setup, () => {
    const worker = new EventEmitter()
    workers.push(worker)
    return Object.assign(worker, {
      postMessage: (message: ToWorker) => void sent.push(message),
      ref: () => void (holds.process = true),
      unref: () => void (holds.process = false),
      terminate: async () => 0,
    }) as unknown as WorkerLike
  })
  const answer = (message: FromWorker) => workers.at(-1)!.emit('message', message)
  return { host, workers, sent, holds, answer }
}

const described = { name: 'onnxruntime-node', version: '1', threads: 1 } as const

test('a caller that leaves is told to the worker, once; one that was answered leaves nothing behind', async () => {
  const { host, sent, answer } = scriptedHost()
  const leaving = new AbortController()
  const left = host.request('describe', undefined, { signal: leaving.signal })
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  expect(sent.slice(1)).toEqual([{ type: 'cancel', id: 1 }])

  const staying = new AbortController()
  const stayed = host.request('describe', undefined, { signal: staying.signal })
  answer({ type: 'result', id: 2, output: described })
  expect(await stayed).toEqual(described)
  expect(getEventListeners(staying.signal, 'abort')).toEqual([])
  staying.abort()
  expect(sent.filter(({ type }) => type === 'cancel')).toHaveLength(1)
})

test('work under way keeps the process alive, and nothing else', async () => {
  const { host, holds, answer } = scriptedHost()
  const calls = [host.request('describe', undefined), host.request('describe', undefined)]
  expect(holds.process).toBe(true)
  answer({ type: 'result', id: 1, output: described })
  expect(holds.process).toBe(true)
  answer({ type: 'error', id: 2, code: 'BACKEND', message: 'no' })
  expect(holds.process).toBe(false)
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
  ])
})

test('after a worker that died, the next call begins another', async () => {
  const { host, workers, answer } = scriptedHost()
  const lost = host.request('describe', undefined)
  workers[0]!.emit('exit', 1)
  await expect(lost).rejects.toMatchObject({ code: 'BACKEND' })
  const next = host.request('describe', undefined)
  expect(workers).toHaveLength(2)
  answer({ type: 'result', id: 2, output: described })
  expect(await next).toEqual(described)
})
