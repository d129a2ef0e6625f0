import type { Backend } from '@tiltyard/core'
import { bigramBackend, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { datum, forwardBackward, logprobsOf, peer, plain } from './peer.ts'

const adam = (model: string, seqId: number, settings: object = { learning_rate: 0.1 }) => ({
  model_id: model,
  seq_id: seqId,
  adam_params: settings,
})
const forward = (model: string, seqId: number, data: readonly object[] = [plain]) => ({
  model_id: model,
  seq_id: seqId,
  forward_input: { data, loss_fn: 'cross_entropy' },
})
const lossOf = (result: Record<string, unknown>) =>
  (result['metrics'] as Record<string, number>)['loss:sum']!

describe('models', () => {
  test('#18 a model is named after its session and number, and made once', async () => {
    const { call, model: open } = peer()
    const { session, model } = await open()
    expect(model).toBe(`${session}:train:0`)
    const again = {
      session_id: session,
      model_seq_id: 0,
      base_model: 'bigram',
      lora_config: { rank: 4 },
    }
    const [first, second] = [await call('/create_model', again), await call('/create_model', again)]
    expect(first.json).toEqual(second.json)
    expect((await call(`/sessions/${session}`)).json['training_run_ids']).toEqual([model])
  })

  test.each([
    [{ rank: 0 }, 'rank'],
    [{ rank: -1 }, 'rank'],
    [{}, 'rank'],
    [{ rank: 4, train_mlp: false, train_attn: false, train_unembed: false }, 'nothing would learn'],
    [{ rank: 4, train_mlp: false }, 'all parts'],
  ])('#20 adapters %j are refused with a reason', async (lora, reason) => {
    const { call, model: open } = peer()
    const { session } = await open()
    const { status, json } = await call('/create_model', {
      session_id: session,
      model_seq_id: 1,
      base_model: 'bigram',
      lora_config: lora,
    })
    expect(status).toBe(400)
    expect(json['detail']).toContain(reason)
  })

  test('a model that isn’t there fails its future, by name', async () => {
    const { done, model: open } = peer()
    const { session } = await open()
    const body = {
      session_id: session,
      model_seq_id: 1,
      base_model: 'bigrim',
      lora_config: { rank: 1 },
    }
    expect(await done('/create_model', body)).toEqual({
      category: 'user',
      error: 'unknown model "bigrim"; did you mean "bigram"?',
    })
  })

  test('#21 a model tells its tokenizer; a whole model tells that it is no adapter', async () => {
    const { call, model: open } = peer({ tokenizer: '/some/folder' })
    const { model } = await open()
    expect((await call('/get_info', { model_id: model })).json).toMatchObject({
      is_lora: true,
      lora_rank: 4,
      model_data: { model_name: 'bigram', tokenizer_id: '/some/folder' },
    })
    const whole = peer()
    const opened = await whole.model({ base_model: 'bigram:full', lora_config: { rank: 1 } })
    const info = (await whole.call('/get_info', { model_id: opened.model })).json
    expect(info).toMatchObject({ is_lora: false, model_name: 'bigram' })
  })

  test('#22 an unloaded model is gone', async () => {
    const { call, done, model: open } = peer()
    const { model } = await open()
    expect(await done('/unload_model', { model_id: model })).toMatchObject({ model_id: model })
    const { status, json } = await call('/optim_step', adam(model, 1))
    expect(status).toBe(404)
    expect(json['detail']).toContain('unloaded')
  })
})

describe('order', () => {
  test('#31 calls are carried out by their numbers, whatever the order of arrival', async () => {
    const { call, result, model: open } = peer()
    const { model } = await open()
    const third = await call('/forward', forward(model, 3))
    const second = await call('/optim_step', adam(model, 2))
    const first = await call('/forward_backward', forwardBackward(model, 1, [plain]))
    const [trained, stepped, seen] = await Promise.all(
      [first, second, third].map(({ json }) => result(json['request_id'])),
    )
    expect(stepped).toHaveProperty('metrics')
    expect(lossOf(seen!)).toBeLessThan(lossOf(trained!))
  })

  test('#32 the same call twice is one; another under its number is refused', async () => {
    const { call, result, model: open } = peer()
    const { model } = await open()
    const body = forwardBackward(model, 1, [plain])
    const [first, second] = [
      await call('/forward_backward', body),
      await call('/forward_backward', body),
    ]
    expect(second.json).toEqual(first.json)
    const other = await call('/forward_backward', forwardBackward(model, 1, [plain, plain]))
    expect(other.status).toBe(409)
    await call('/optim_step', adam(model, 2))
    const after = lossOf(
      await result((await call('/forward', forward(model, 3))).json['request_id']),
    )
    const once = peer()
    const { model: reference } = await once.model()
    await once.call('/forward_backward', forwardBackward(reference, 1, [plain]))
    await once.call('/optim_step', adam(reference, 2))
    expect(lossOf(await once.done('/forward', forward(reference, 3)))).toBe(after)
  })

  test('#33 a sampler save that comes again with another session number is the same', async () => {
    const { call, model: open } = peer()
    const { model } = await open()
    const save = { model_id: model, seq_id: 1, sampling_session_seq_id: 0 }
    const first = await call('/save_weights_for_sampler', save)
    const second = await call('/save_weights_for_sampler', { ...save, sampling_session_seq_id: 1 })
    expect(second.json).toEqual(first.json)
  })

  test('#34 a number that never comes fails those behind it after a while, and no other model', async () => {
    const clock = simulatedClock()
    const {
      call,
      result,
      done,
      model: open,
    } = peer({ clock, limits: { holeMs: 20_000, holdMs: 1 } })
    const { session, model } = await open()
    await result(
      (
        await call('/create_model', {
          session_id: session,
          model_seq_id: 1,
          base_model: 'bigram',
          lora_config: { rank: 1 },
        })
      ).json['request_id'],
    )
    const waiting = await call('/optim_step', adam(model, 2))
    expect(await done('/forward', forward(`${session}:train:1`, 1))).toHaveProperty('metrics')
    for (let second = 0; second < 30; second += 5) await clock.advance(5_000)
    const { json } = await call('/retrieve_future', { request_id: waiting.json['request_id'] })
    expect(json).toEqual({ category: 'user', error: 'seq_id 1 has not come for 20 s' })
    expect(await done('/forward', forward(model, 3))).toHaveProperty('metrics')
  })

  test('calls without numbers come in order of arrival', async () => {
    const { call, result, model: open } = peer()
    const { model } = await open()
    const answers = [
      await call('/forward_backward', forwardBackward(model, undefined, [plain])),
      await call('/optim_step', { model_id: model, adam_params: { learning_rate: 0.1 } }),
    ]
    for (const { json } of answers)
      expect(await result(json['request_id'])).toHaveProperty('metrics')
  })
})

describe('forward and backward', () => {
  test('#37 #38 the official encoder’s forward is read, and trains nothing', async () => {
    const { call, result, model: open } = peer()
    const { model } = await open()
    // Vector 1 of tinker-protocol.md §11.4, for this model and call 1.
    const body = Buffer.from(
      '1a640a100a0e0a0c01000000020000000300000012300a0d7461726765745f746f6b656e73121f0a180200000000000000030000000000000004000000000000001802220103121e0a077765696768747312130a0c000000000000803f0000803f1801220103220d63726f73735f656e74726f70793001',
      'hex',
    )
    const head = (seq: number) =>
      Buffer.concat([
        Buffer.from([0x0a, model.length]),
        Buffer.from(model),
        Buffer.from([0x10, seq]),
      ])
    const headers = { 'content-type': 'application/x-protobuf' }
    const send = async (seq: number) =>
      result(
        (await call('/forward_backward', Buffer.concat([head(seq), body]), { headers })).json[
          'request_id'
        ],
      )
    const first = await send(1)
    expect(logprobsOf(first)).toHaveLength(3)
    await call('/optim_step', adam(model, 2, { learning_rate: 1, beta1: 0 }))
    expect(await send(3)).toEqual(first)
  })

  test('#43 sparse weights are as dense ones; targets in two dimensions sum over their columns', async () => {
    const { done, model: open } = peer()
    const { model } = await open()
    const input = { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] }
    const targets = { data: [5, 6, 7, 8], dtype: 'int64', shape: [2, 2] }
    const dense = { data: [0.25, 0, 0, 0.75], dtype: 'float32', shape: [2, 2] }
    const sparse = {
      data: [0.25, 0.75],
      dtype: 'float32',
      shape: [2, 2],
      sparse_crow_indices: [0, 1, 2],
      sparse_col_indices: [0, 1],
    }
    const of = (weights: object) => [
      { model_input: input, loss_fn_inputs: { target_tokens: targets, weights } },
    ]
    const wide = await done('/forward', forward(model, 1, of(dense)))
    const same = await done('/forward', forward(model, 2, of(sparse)))
    expect(same).toEqual(wide)
    const outputs = wide['loss_fn_outputs'] as { logprobs: { data: number[]; shape: number[] } }[]
    expect(outputs[0]!.logprobs.shape).toEqual([2, 2])
    const one = await done(
      '/forward',
      forward(model, 3, [
        datum([1, 2], { target_tokens: [5, 7], weights: [0.25, 0] }),
        datum([1, 2], { target_tokens: [6, 8], weights: [0, 0.75] }),
      ]),
    )
    const [a5, b7, a6, b8] = logprobsOf(one)
    expect(outputs[0]!.logprobs.data).toEqual([a5, a6, b7, b8])
    expect(lossOf(wide)).toBeCloseTo(lossOf(one), 5)
  })

  test.each([
    [
      'a wrong length',
      datum([1, 2, 3], { target_tokens: [2, 3], weights: [1, 1] }),
      'cross_entropy',
      /datum 1: input has 3 positions, targets has 2/,
    ],
    ['an unknown loss', plain, 'gspo', /no loss "gspo" here/],
    [
      'a missing input',
      datum([1], { target_tokens: [2] }),
      'cross_entropy',
      /datum 1: cross_entropy needs weights/,
    ],
    [
      'an extra input',
      datum([1], { target_tokens: [2], weights: [1], mask: [1] }),
      'cross_entropy',
      /datum 1: cross_entropy has no input mask/,
    ],
    [
      'an id out of range',
      datum([999], { target_tokens: [2], weights: [1] }),
      'cross_entropy',
      /id 999/,
    ],
  ])(
    '#44 %s fails its future as the user’s, and holds nothing up',
    async (_, wrong, loss, message) => {
      const { done, model: open } = peer()
      const { model } = await open()
      const failed = await done(
        '/forward_backward',
        forwardBackward(model, 1, [plain, wrong], loss),
      )
      expect(failed).toEqual({ category: 'user', error: expect.stringMatching(message) as string })
      expect(await done('/forward', forward(model, 2))).toHaveProperty('metrics')
    },
  )

  test('settings of a loss that it doesn’t have are refused; dro needs its beta', async () => {
    const { done, model: open } = peer()
    const { model } = await open()
    const policy = datum([1], { target_tokens: [2], logprobs: [-1], advantages: [1] })
    const of = (seq: number, loss: string, config?: object) =>
      done('/forward_backward', forwardBackward(model, seq, [policy], loss, config))
    expect((await of(1, 'ppo', { clip_low: 0.8 }))['error']).toBe('ppo has no setting clip_low')
    expect((await of(2, 'dro'))['error']).toContain('beta')
    expect(await of(3, 'dro', { beta: 0.05 })).toHaveProperty('metrics')
  })

  test('#45 names of metrics have one colon, and the loss is among them', async () => {
    const { done, model: open } = peer()
    const { model } = await open()
    const { metrics } = await done('/forward', forward(model, 1))
    expect(Object.keys(metrics as object)).toContain('loss:sum')
    for (const name of Object.keys(metrics as object)) expect(name.split(':')).toHaveLength(2)
  })

  test('#52 a step without settings takes those of the protocol', async () => {
    const { call, done, model: open } = peer()
    const { model } = await open()
    const spelled = {
      learning_rate: 1e-4,
      beta1: 0.9,
      beta2: 0.95,
      eps: 1e-12,
      weight_decay: 0,
      grad_clip_norm: 0,
    }
    const seen: number[] = []
    for (const settings of [{}, spelled]) {
      const one = peer()
      const { model: made } = await one.model()
      await one.call('/forward_backward', forwardBackward(made, 1, [plain]))
      await one.call('/optim_step', adam(made, 2, settings))
      seen.push(lossOf(await one.done('/forward', forward(made, 3))))
    }
    expect(seen[0]).toBe(seen[1])
    await call('/forward_backward', forwardBackward(model, 1, [plain]))
    const refused = await done('/optim_step', {
      model_id: model,
      seq_id: 2,
      optimizer_params: { type: 'dimuon' },
    })
    expect(refused['error']).toContain('AdamW')
  })
})

const failing = () => Promise.reject(new Error('SECRET in /a/path'))

test('a backend that throws anything fails the future, without its words', async () => {
  const backend = bigramBackend()
  const broken: Backend = {
    ...backend,
    async learner(options) {
      const learner = await backend.learner(options)
      return { ...learner, optimStep: failing }
    },
  }
  const { done, model: open } = peer({}, broken)
  const { model } = await open()
  expect(await done('/optim_step', adam(model, 1))).toEqual({
    category: 'server',
    error: 'the server failed (Error)',
  })
})
