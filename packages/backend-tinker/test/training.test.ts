import { tokenChunk, type Datum, type Loss } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { tinkerBackend, tinkerClient, wireDatum, type WireDatum } from '../src/index.ts'
import { fieldsOf, textOf } from '../src/wire/protobuf.ts'
import { fakeService, json, type Answer, type Asked } from './fake-service.ts'

const crossEntropy: Loss = { name: 'cross_entropy' }

function datum(token: number): Datum {
  return {
    input: [tokenChunk([token])],
    targets: Int32Array.of(token),
    weights: Float32Array.of(1),
  }
}

interface Trained {
  readonly seq: number
  readonly forwardOnly: boolean
  readonly loss: string
  /** First input token of each datum. */
  readonly tokens: readonly number[]
}

function trainedOf({ bytes }: Asked): Trained {
  let seq = 0
  let forwardOnly = false
  let loss = ''
  const tokens: number[] = []
  for (const field of fieldsOf(bytes)) {
    if (field.number === 2) seq = field.value
    if (field.number === 4) loss = textOf(field.bytes)
    if (field.number === 6) forwardOnly = true
    if (field.number !== 3) continue
    // Datum → chunk → encoded text → tokens.
    let inner = field.bytes
    for (const _ of ['chunk', 'encoded text', 'tokens'])
      inner = [...fieldsOf(inner)].find(({ number }) => number === 1)!.bytes
    tokens.push(inner[0]! + 256 * inner[1]!)
  }
  return { seq, forwardOnly, loss, tokens }
}

interface Service {
  readonly order: string[]
  readonly service: ReturnType<typeof fakeService>
}

/**
 * A service that numbers its futures after their `seq_id` and answers each with minus the first token of every datum. `before`
 * may answer first.
 */
function trainingService(before: Answer = () => undefined, flags: object = {}): Service {
  const order: string[] = []
  const results = new Map<string, object>()
  const service = fakeService(async (asked) => {
    const early = await before(asked)
    if (early !== undefined) return early
    const { path, json: body } = asked
    const submitted = (id: string, result: object) => {
      results.set(id, result)
      order.push(id)
      return json({ request_id: id })
    }
    if (path === '/create_model') return submitted('model', { model_id: 's:train:0' })
    if (path === '/unload_model') return json({ detail: 'no such call' }, 404)
    if (path === '/forward_backward') {
      const { seq, forwardOnly, tokens } = trainedOf(asked)
      return submitted(`${forwardOnly ? 'forward' : 'both'} ${seq}`, {
        loss_fn_outputs: tokens.map((token) => ({
          logprobs: { data: [-token], dtype: 'float32' },
        })),
        metrics: { 'loss:sum': 1 },
      })
    }
    if (path === '/optim_step') return submitted(`step ${String(body['seq_id'])}`, {})
    if (path === '/save_weights')
      return submitted(`save ${String(body['seq_id'])}`, {
        path: `tinker://s:train:0/weights/${String(body['path'])}`,
      })
    if (path === '/retrieve_future') return json(results.get(body['request_id'] as string)!)
    return undefined
  }, flags)
  return { order, service }
}

async function learnerOf({ service }: Service, options: object = {}) {
  const backend = tinkerBackend({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    ...options,
  })
  return backend.learner({ model: 'toy', adaptation: { rank: 4 } })
}

const plain = (token: number): WireDatum => ({
  input: [tokenChunk([token])],
  lossInputs: { target_tokens: { data: Int32Array.of(token) } },
})

const open = async (made: Service) => {
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: made.service.fetch,
  })
  return client.createModel({ baseModel: 'toy', rank: 4 })
}

describe('the order of calls', () => {
  test('numbers begin at 1, have no gap, and go out in the order of the calls', async () => {
    const made = trainingService()
    const learner = await learnerOf(made)
    await Promise.all([
      learner.forwardBackward([datum(1)], crossEntropy),
      learner.optimStep({ learningRate: 1 }),
      learner.forward([datum(2)], crossEntropy),
      learner.save('one'),
    ])
    expect(made.order).toEqual(['model', 'both 1', 'step 2', 'forward 3', 'save 4'])
    expect(learner.steps).toBe(1)
  })

  test('#48 F44: a cut batch is one batch: its first part goes last, a step waits for all, results are in order', async () => {
    const made = trainingService()
    const learner = await learnerOf(made)
    const data = Array.from({ length: 2_500 }, (_, index) => datum(index))
    const [result] = await Promise.all([
      learner.forwardBackward(data, crossEntropy),
      learner.optimStep({ learningRate: 1 }),
    ])
    expect(made.order.toSorted()).toEqual(['both 1', 'both 2', 'both 3', 'model', 'step 4'])
    expect(made.order.slice(-2)).toEqual(['both 1', 'step 4'])
    expect(result.logprobs.map(([value]) => value)).toEqual(data.map((_, index) => -index + 0))
    expect(result.loss).toBe(3)
  })

  test('parts go one after the other where the service wants it', async () => {
    const made = trainingService(undefined, {
      parallel_fwdbwd_chunks: false,
      fwdbwd_max_chunk_len: 2,
    })
    const learner = await learnerOf(made)
    await learner.forward([1, 2, 3, 4, 5].map(datum), crossEntropy)
    expect(made.order).toEqual(['model', 'forward 1', 'forward 2', 'forward 3'])
  })

  test('#50 no data is an error without a request', async () => {
    const made = trainingService()
    const learner = await learnerOf(made)
    await expect(learner.forward([], crossEntropy)).rejects.toThrow('no data')
    expect(made.service.at('/forward_backward')).toHaveLength(0)
  })
})

/** Saves while the first `count` tries meet a conflict. */
const conflicts = async (count: number) => {
  const clock = simulatedClock()
  const made = trainingService(({ path }) =>
    path === '/save_weights' && made.service.at(path).length <= count
      ? json({ detail: 'already exists' }, 409)
      : undefined,
  )
  const learner = await learnerOf(made, { clock })
  const began = clock.now()
  const saving = clock.drive(learner.save('one'))
  return { saving, clock, began }
}

describe('when answers get lost', () => {
  test('F43: a request is repeated under its number, with its bytes; each is carried out once', async () => {
    const lost = new Set<string>()
    const done = new Map<string, number>()
    const made = trainingService(({ path, bytes }) => {
      if (path !== '/forward_backward' && path !== '/optim_step') return undefined
      const key = `${path} ${Buffer.from(bytes).toString('base64')}`
      done.set(key, (done.get(key) ?? 0) + 1)
      // The service has it, the answer never arrives.
      if (lost.has(key)) return undefined
      lost.add(key)
      throw new TypeError('socket hang up')
    })
    const clock = simulatedClock()
    const learner = await learnerOf(made, { clock })
    const work = Promise.all([
      learner.forwardBackward([datum(1)], crossEntropy),
      learner.optimStep({ learningRate: 1 }),
    ])
    await clock.drive(work)
    // Two sendings of the very same request each: the service tells them by their number.
    expect([...done.values()]).toEqual([2, 2])
    expect(made.order).toEqual(['model', 'both 1', 'step 2'])
  })

  test('F45: if a part fails for good no step is sent, and later calls say why', async () => {
    const made = trainingService(
      (asked) =>
        asked.path === '/forward_backward' && trainedOf(asked).seq === 2
          ? json({ detail: 'boom' }, 500)
          : undefined,
      { fwdbwd_max_chunk_len: 1 },
    )
    const clock = simulatedClock()
    const learner = await learnerOf(made, { clock, deadlines: { retries: 5_000 } })
    const outcomes = await clock.drive(
      Promise.allSettled([
        learner.forwardBackward([datum(1), datum(2)], crossEntropy),
        learner.optimStep({ learningRate: 1 }),
      ]),
    )
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(made.service.at('/optim_step')).toHaveLength(0)
    await expect(learner.forward([datum(1)], crossEntropy)).rejects.toThrow(/boom.*checkpoint/)
    expect(learner.steps).toBe(0)
  })

  test('a name that is taken fails within seconds; a conflict that passes is none', async () => {
    const taken = await conflicts(Number.POSITIVE_INFINITY)
    await expect(taken.saving).rejects.toThrow('already exists')
    expect(taken.clock.now() - taken.began).toBeLessThan(3_000)
    const passing = await conflicts(1)
    await expect(passing.saving).resolves.toEqual({
      path: 'tinker://s:train:0/weights/one',
      kind: 'training',
    })
  })
})

describe('what is sent', () => {
  test('all six settings of Adam, those of the contract where none are given', async () => {
    const made = trainingService()
    const learner = await learnerOf(made)
    await learner.optimStep({ learningRate: 3e-4, clipNorm: 1 })
    expect(made.service.at('/optim_step')[0]!.json).toEqual({
      model_id: 's:train:0',
      seq_id: 1,
      type: 'optim_step',
      adam_params: {
        learning_rate: 3e-4,
        beta1: 0.9,
        beta2: 0.95,
        eps: 1e-8,
        weight_decay: 0,
        grad_clip_norm: 1,
      },
    })
  })

  test('a name that can’t be one is refused here', async () => {
    const learner = await learnerOf(trainingService())
    await expect(learner.save('a/b')).rejects.toThrow('"a/b" is no name')
  })

  test('a service that doesn’t tell the loss has it reckoned from the log-probabilities', async () => {
    const made = trainingService(({ path }) =>
      path === '/retrieve_future'
        ? json({
            loss_fn_outputs: [{ logprobs: { data: [-2], dtype: 'float32' } }],
            metrics: {},
            model_id: 'm',
          })
        : undefined,
    )
    const learner = await learnerOf(made)
    const policy = {
      input: [tokenChunk([1])],
      targets: Int32Array.of(1),
      logprobs: Float32Array.of(-2),
      advantages: Float32Array.of(3),
    }
    expect((await learner.forward([datum(1)], crossEntropy)).loss).toBe(2)
    expect((await learner.forward([policy], { name: 'importance_sampling' })).loss).toBe(-3)
    expect((await learner.forward([policy], { name: 'ppo' })).loss).toBe(-3)
    expect((await learner.forward([policy], { name: 'cispo' })).loss).toBe(6)
    expect((await learner.forward([policy], { name: 'dro', beta: 0.1 })).loss).toBe(6)
  })
})

describe('#49 a loss of one’s own', () => {
  test('is a forward and a backward whose weights are its derivatives, negated', async () => {
    const made = trainingService()
    const model = await open(made)
    const working = model.forwardBackwardCustom([plain(3), plain(5)], (logprobs) => ({
      // C = Σ ℓ², whose derivative is 2ℓ; the service answers ℓ = −token.
      loss: logprobs.reduce((sum, [value]) => sum + value! ** 2, 0),
      gradients: logprobs.map((values) => values.map((value) => 2 * value)),
      metrics: { 'mine:sum': 7 },
    }))
    const stepping = model.optimStep({ learningRate: 1 })
    expect((await working).metrics).toEqual({
      'loss:sum': 34,
      'surrogate_loss:sum': 1,
      'mine:sum': 7,
    })
    await stepping
    expect(made.order).toEqual(['model', 'forward 1', 'both 2', 'step 3'])
    const weights = Buffer.from(made.service.at('/forward_backward')[1]!.bytes).toString('hex')
    expect(weights).toContain(Buffer.from(Float32Array.of(6).buffer).toString('hex'))
    expect(weights).toContain(Buffer.from(Float32Array.of(10).buffer).toString('hex'))
  })

  test('that throws, or gives too little, learns nothing and breaks nothing', async () => {
    const made = trainingService()
    const model = await open(made)
    await expect(
      model.forwardBackwardCustom([plain(3)], () => {
        throw new Error('mine')
      }),
    ).rejects.toThrow('nothing was learned')
    await expect(
      model.forwardBackwardCustom([plain(3)], () => ({ loss: 0, gradients: [] })),
    ).rejects.toThrow('no derivatives for 1')
    const extra = wireDatum(
      { ...datum(1), logprobs: Float32Array.of(0), advantages: Float32Array.of(0) },
      'ppo',
    )
    await expect(
      model.forwardBackwardCustom([extra], () => ({ loss: 0, gradients: [] })),
    ).rejects.toThrow('not logprobs')
    await model.optimStep({ learningRate: 1 })
    expect(made.order.filter((id) => id.startsWith('both'))).toEqual([])
  })
})
