import { expect, test } from 'vitest'

import { datum, forwardBackward, logprobsOf, peer, plain, type Peer } from './peer.ts'

// AdamW is plain descent where epsilon is far above any gradient: an update is linear in the gradient.
const descent = { learning_rate: 100, beta1: 0, beta2: 0, eps: 1_000 }

interface Output {
  readonly logprobs: {
    readonly data: readonly number[]
    readonly dtype: string
    readonly shape: readonly number[]
  }
}

/** A model whose calls are numbered as they are made, each awaited. */
async function numbered(one: Peer, more: object = {}) {
  const { session, model } = await one.model(more)
  let seq = 0
  const at = () => ({ model_id: model, seq_id: (seq += 1) })
  const forward = (data: readonly object[], loss = 'cross_entropy', config?: object) =>
    one.done('/forward', {
      ...at(),
      forward_input: {
        data,
        loss_fn: loss,
        ...(config !== undefined && { loss_fn_config: config }),
      },
    })
  return {
    session,
    model,
    forward,
    backward: (data: readonly object[]) =>
      one.done('/forward_backward', forwardBackward(model, at().seq_id, data)),
    step: () => one.done('/optim_step', { ...at(), adam_params: descent }),
    seen: async () => logprobsOf(await forward([plain])),
  }
}

const lossOf = (result: Record<string, unknown>) =>
  (result['metrics'] as Record<string, number>)['loss:sum']!

const closeTo = (given: readonly number[], wanted: readonly number[]) => {
  expect(given).toHaveLength(wanted.length)
  for (const [index, value] of given.entries()) expect(value).toBeCloseTo(wanted[index]!, 5)
}

test('#19 fresh models with the same seed give the same, and what their base gives', async () => {
  const one = peer()
  const [left, right] = [await numbered(one), await numbered(one)]
  const fresh = await left.seen()
  expect(await right.seen()).toEqual(fresh)
  const { json } = await one.call('/create_sampling_session', {
    session_id: left.session,
    sampling_session_seq_id: 9,
    base_model: 'bigram',
  })
  const scored = await one.done('/asample', {
    sampling_session_id: json['sampling_session_id'],
    seq_id: 0,
    num_samples: 1,
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3, 4] }] },
    sampling_params: { max_tokens: 1 },
    prompt_logprobs: true,
  })
  closeTo((scored['prompt_logprobs'] as number[]).slice(1), [...fresh])
})

test('#35 a step that is sent right behind its batch waits for it', async () => {
  const one = peer()
  const [patient, rushed] = [await numbered(one), await numbered(one)]
  await patient.backward([plain])
  await patient.step()
  const { model } = rushed
  const calls = await Promise.all([
    one.call('/forward_backward', forwardBackward(model, 1, [plain])),
    one.call('/optim_step', { model_id: model, seq_id: 2, adam_params: descent }),
    one.call('/forward', {
      model_id: model,
      seq_id: 3,
      forward_input: { data: [plain], loss_fn: 'cross_entropy' },
    }),
  ])
  const [, , after] = await Promise.all(calls.map(({ json }) => one.result(json['request_id'])))
  expect(logprobsOf(after!)).toEqual(await patient.seen())
})

test('#40 two batches before a step are one batch of both', async () => {
  const one = peer()
  const other = datum([5, 6], { target_tokens: [6, 7], weights: [0.5, 2] })
  const [apart, whole] = [await numbered(one), await numbered(one)]
  const before = await whole.seen()
  await apart.backward([plain])
  await apart.backward([other])
  await whole.backward([plain, other])
  await Promise.all([apart.step(), whole.step()])
  const after = await whole.seen()
  expect(after).not.toEqual(before)
  closeTo(await apart.seen(), after)
})

test('#41 cross-entropy is linear in its weights, negative and fractional ones too, and so is its gradient', async () => {
  const one = peer()
  const of = (...weights: readonly number[]) =>
    datum([1, 2, 3], { target_tokens: [2, 3, 4], weights })
  const [sum, parts] = [await numbered(one), await numbered(one)]
  const first = lossOf(await sum.forward([of(1, -0.5, 0)]))
  const second = lossOf(await sum.forward([of(0.25, 2, -1)]))
  expect(lossOf(await sum.forward([of(1.25, 1.5, -1)]))).toBeCloseTo(first + second, 5)
  expect(lossOf(await sum.forward([of(-2, 1, 0)]))).toBeCloseTo(-2 * first, 5)
  await sum.backward([of(1.25, 1.5, -1)])
  await parts.backward([of(1, -0.5, 0)])
  await parts.backward([of(0.25, 2, -1)])
  await Promise.all([sum.step(), parts.step()])
  closeTo(await sum.seen(), await parts.seen())
})

test('#42 ppo is clipped at 0.8 and 1.2 unless it is told otherwise', async () => {
  const model = await numbered(peer())
  const now = await model.seen()
  // Ratios of 1.5 and 0.5, where a clip bites: up with an advantage, down with a disadvantage.
  const [, second, third] = now
  const played = datum([1, 2, 3], {
    target_tokens: [2, 3, 4],
    logprobs: [now[0]!, second! - Math.log(1.5), third! - Math.log(0.5)],
    advantages: [0, 1, -1],
  })
  const loss = async (config?: object) => lossOf(await model.forward([played], 'ppo', config))
  expect(await loss()).toBeCloseTo(-1.2 + 0.8, 5)
  expect(await loss({ clip_low_threshold: 0.9, clip_high_threshold: 1.1 })).toBeCloseTo(-0.2, 5)
  expect(await loss({ clip_low_threshold: 0.4, clip_high_threshold: 1.6 })).toBeCloseTo(-1, 5)
})

test('#46 outputs are in the order of the data, float32, each as long as its targets', async () => {
  const model = await numbered(peer())
  const data = [
    plain,
    datum([9], { target_tokens: [1], weights: [1] }),
    datum([5, 6, 7, 8], { target_tokens: [6, 7, 8, 9], weights: [1, 1, 1, 1] }),
  ]
  const outputs = (await model.forward(data))['loss_fn_outputs'] as readonly Output[]
  expect(outputs.map(({ logprobs }) => [logprobs.dtype, ...logprobs.shape])).toEqual([
    ['float32', 3],
    ['float32', 1],
    ['float32', 4],
  ])
  for (const [index, { logprobs }] of outputs.entries()) {
    expect(logprobs.data).toEqual(logprobsOf(await model.forward([data[index]!])))
    expect(logprobs.data).toEqual([...Float32Array.from(logprobs.data)])
  }
})
