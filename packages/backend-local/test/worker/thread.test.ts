import { Worker } from 'node:worker_threads'

import { tokenChunk, tokenPrompt, type Backend, type Datum } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { localBackendOn } from '../../src/local-backend.ts'
import { modelShapeSchema } from '../../src/model/shape.ts'
import { freshFolder, tinyShape } from '../support/tiny.ts'

/** A thread that answers nothing until it is told how to end. */
function deadBackend(code: string): Backend {
  return localBackendOn(() => new Worker(code, { eval: true }), {
    models: { tiny: { shape: modelShapeSchema.parse(tinyShape) } },
    folder: freshFolder(),
  })
}

const datum: Datum = {
  input: [tokenChunk([1, 2, 3])],
  targets: Int32Array.of(2, 3, 4),
  weights: Float32Array.of(1, 1, 1),
}

test('when the worker fails, every call under way is refused at once, with the cause', async () => {
  const backend = deadBackend(`
    const { parentPort } = require('node:worker_threads')
    let count = 0
    parentPort.on('message', () => { count += 1; if (count === 3) throw new Error('out of luck') })
  `)
  const calls = [backend.describe(), backend.sampler({ model: 'tiny' }), backend.describe()]
  for (const call of await Promise.allSettled(calls)) {
    expect(call).toMatchObject({
      status: 'rejected',
      reason: { code: 'BACKEND', message: expect.stringContaining('out of luck') },
    })
  }
  await backend.close()
})

test('when the worker just ends, calls are refused and say so', async () => {
  const backend = deadBackend(
    `require('node:worker_threads').parentPort.once('message', () => process.exit(3))`,
  )
  await expect(backend.describe()).rejects.toThrow('ended with code 3')
  await backend.close()
})

test('closing while calls are under way refuses them instead of leaving them waiting', async () => {
  const backend = deadBackend(`require('node:worker_threads').parentPort.on('message', () => {})`)
  const call = backend.describe().catch((error: unknown) => error)
  await backend.close()
  expect(await call).toMatchObject({ code: 'STATE' })
  await expect(backend.sampler({ model: 'tiny' })).rejects.toMatchObject({ code: 'STATE' })
})

test('what the model can’t take is refused before it reaches the worker', async () => {
  const { tinyBackend } = await import('../support/tiny.ts')
  const backend = tinyBackend()
  const sampler = await backend.sampler({ model: 'tiny' })
  await expect(sampler.sample({ prompt: tokenPrompt([64]), maxTokens: 1 })).rejects.toMatchObject({
    code: 'DATA',
  })
  const learner = await backend.learner({ model: 'tiny', adaptation: 'full' })
  const forward = (wrong: Partial<Datum>) =>
    learner.forward([datum, { ...datum, ...wrong }], { name: 'cross_entropy' })
  const outside = 'datum 1: token 2 is'
  await expect(forward({ targets: Int32Array.of(2, 3, -1) })).rejects.toThrow(outside)
  await expect(forward({ input: [tokenChunk([1, 2, 64])] })).rejects.toThrow(outside)
  const length = tinyShape.contextWindow + 1
  const long = {
    input: [tokenChunk(new Int32Array(length))],
    targets: new Int32Array(length),
    weights: new Float32Array(length),
  }
  await expect(forward(long)).rejects.toThrow('datum 1: it has 257 positions')
  const image = { type: 'image', format: 'png', data: new Uint8Array(1), tokens: 3 } as const
  await expect(forward({ input: [image] })).rejects.toMatchObject({ code: 'UNSUPPORTED' })
  await backend.close()
})
