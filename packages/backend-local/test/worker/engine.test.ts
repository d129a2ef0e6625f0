import { expect, test } from 'vitest'

import { modelShapeSchema } from '../../src/model/shape.ts'
import { createEngine } from '../../src/worker/engine.ts'
import type { FromWorker, RequestName, Requests } from '../../src/worker/protocol.ts'
import { testExecutor } from '../support/engine.ts'
import { freshFolder, tinyShape } from '../support/tiny.ts'

const { name } = await testExecutor()

/** An engine with one open sampler, and what it answers. `fails` may throw at a message. */
async function openEngine(fails: (message: FromWorker) => void = () => {}) {
  const shape = modelShapeSchema.parse(tinyShape)
  const answers = new Map<number, FromWorker>()
  const engine = createEngine(
    {
      models: { tiny: { shape, initial: { seed: 0, deviation: 0.02, queryKeyNorm: 1 } } },
      folder: freshFolder(),
      executor: name === 'onnxruntime-web' ? 'web' : 'native',
      threads: 1,
      microBatchTokens: 512,
      maxRows: 8,
      cacheBytes: 2 ** 20,
      spellings: undefined,
    },
    (message) => {
      fails(message)
      if (message.type !== 'token') answers.set(message.id, message)
    },
  )
  let id = 0
  const send = <Name extends RequestName>(request: Name, input: Requests[Name]['in']): number => {
    id += 1
    engine.receive({ type: 'request', id, name: request, input })
    return id
  }
  const answerTo = async (request: number) => {
    await expect.poll(() => answers.has(request)).toBe(true)
    return answers.get(request)!
  }
  const sample = (more: Partial<Requests['sample']['in']> = {}) =>
    send('sample', {
      sampler: 1,
      prompt: Int32Array.of(1, 2, 3),
      shared: 0,
      maxTokens: 4,
      stopTokens: [],
      stopStrings: [],
      seeds: [1],
      temperature: 1,
      topK: 0,
      topP: 1,
      streaming: false,
      ...more,
    })
  await answerTo(send('openSampler', { sampler: 1, model: 'tiny' }))
  return { engine, answerTo, send, sample }
}

test('a call whose caller left is over: nothing of it, and of its sampler, is kept', async () => {
  const { engine, answerTo, send, sample } = await openEngine()
  const prompt = Int32Array.from({ length: 200 }, (_, at) => at % 64)
  const calls = [
    sample({ maxTokens: 200 }),
    send('logprobs', { sampler: 1, prompt, shared: 0 }),
    send('topLogprobs', { sampler: 1, prompt, shared: 0, k: 2 }),
  ]
  for (const id of calls) engine.receive({ type: 'cancel', id })
  for (const id of calls) expect(await answerTo(id)).toMatchObject({ type: 'error', code: 'STATE' })
})

test('when a policy fails, its calls hear why and later ones begin anew', async () => {
  const { answerTo, sample } = await openEngine(({ type }) => {
    if (type === 'token') throw new Error('out of luck')
  })
  const calls = [sample({ streaming: true }), sample({ maxTokens: 100 })]
  for (const id of calls)
    expect(await answerTo(id)).toMatchObject({
      type: 'error',
      code: 'BACKEND',
      message: expect.stringContaining('out of luck'),
    })
  expect(await answerTo(sample())).toMatchObject({ type: 'result' })
})
