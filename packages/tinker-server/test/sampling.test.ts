import { promptIds, type Backend, type RenderedPrompt } from '@tiltyard/core'
import { bigramBackend, bigramText, simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { forwardBackward, peer, plain, type Peer } from './peer.ts'

async function sampler({ call, model: open }: Peer) {
  const { session, model } = await open()
  const { json } = await call('/create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 5,
    base_model: 'bigram',
  })
  return { session, model, id: json['sampling_session_id'] as string }
}

const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] }
let next = 0
const asking = (id: string, params: object = {}, more: object = {}) => ({
  sampling_session_id: id,
  seq_id: (next += 1),
  num_samples: 1,
  prompt,
  sampling_params: { max_tokens: 6, seed: 5, ...params },
  ...more,
})

interface Sampled {
  readonly sequences: readonly {
    readonly tokens: readonly number[]
    readonly logprobs: readonly number[]
    readonly stop_reason: string
  }[]
  readonly prompt_logprobs?: readonly (number | null)[]
  readonly topk_prompt_logprobs?: readonly (readonly (readonly [number, number])[] | null)[]
}

const sampled = async ({ done }: Peer, body: object) =>
  (await done('/asample', body)) as unknown as Sampled

describe('sampling', () => {
  test('the first of several chunks is what prompts share: the root of the sampler’s prompt', async () => {
    const prompts: RenderedPrompt[] = []
    const inner = bigramBackend()
    const listening: Backend = {
      ...inner,
      async sampler(ref) {
        const silent = await inner.sampler(ref)
        return {
          ...silent,
          sample(request, options) {
            prompts.push(request.prompt)
            return silent.sample(request, options)
          },
        }
      },
    }
    const one = peer({}, listening)
    const { id } = await sampler(one)
    const text = (...tokens: readonly number[]) => ({ type: 'encoded_text', tokens })
    const whole = await sampled(one, asking(id))
    const cut = await sampled(
      one,
      asking(id, {}, { prompt: { chunks: [text(1), text(2), text(3)] } }),
    )
    expect(cut).toEqual(whole)
    expect(prompts.map((it) => [it.parent?.length, [...promptIds(it)]])).toEqual([
      [undefined, [1, 2, 3]],
      [1, [1, 2, 3]],
    ])
  })

  test('#60 a session of a base model; equal seeds give equal tokens', async () => {
    const one = peer()
    const { id } = await sampler(one)
    expect(id).toMatch(/:sample:5$/)
    const first = await sampled(one, asking(id))
    expect(first).toEqual(await sampled(one, asking(id)))
    expect(first.sequences[0]!.tokens).toHaveLength(6)
    const other = await sampled(one, asking(id, { seed: 6 }))
    expect(other.sequences[0]!.tokens).not.toEqual(first.sequences[0]!.tokens)
  })

  test('a request for several has the seeds that follow', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const both = await sampled(one, asking(id, { seed: 5 }, { num_samples: 2 }))
    const second = await sampled(one, asking(id, { seed: 6 }))
    expect(both.sequences[1]).toEqual(second.sequences[0])
  })

  test('#61 stop as a string, strings or ids; what stops is part of the sample', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const free = (await sampled(one, asking(id))).sequences[0]!
    expect(free.stop_reason).toBe('length')
    const token = free.tokens[2]!
    const text = bigramText([token])
    for (const stop of [[token], text, [text]]) {
      const { tokens, stop_reason: reason } = (await sampled(one, asking(id, { stop })))
        .sequences[0]!
      expect(tokens).toEqual(free.tokens.slice(0, free.tokens.indexOf(token) + 1))
      expect(reason).toBe('stop')
    }
  })

  test('a request without a stop ends at the tokens that the server was given', async () => {
    const free = peer()
    const first = (await sampled(free, asking((await sampler(free)).id))).sequences[0]!.tokens[1]!
    const one = peer({ endTokens: [first] })
    const { id } = await sampler(one)
    expect((await sampled(one, asking(id))).sequences[0]!.tokens.at(-1)).toBe(first)
    expect((await sampled(one, asking(id, { stop: [] }))).sequences[0]!.tokens).toHaveLength(6)
  })

  test('#62 #63 log-probabilities of prompts: one a token, the first none, top k in order', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const first = (await sampled(one, asking(id))).sequences[0]!
    const whole = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3, ...first.tokens] }] }
    const scored = await sampled(
      one,
      asking(
        id,
        { max_tokens: 1 },
        { prompt: whole, prompt_logprobs: true, topk_prompt_logprobs: 3 },
      ),
    )
    expect(scored.prompt_logprobs).toHaveLength(9)
    expect(scored.prompt_logprobs![0]).toBeNull()
    for (const [index, value] of first.logprobs.entries())
      expect(scored.prompt_logprobs![3 + index]).toBeCloseTo(value, 4)
    expect(scored.topk_prompt_logprobs![0]).toBeNull()
    for (const row of scored.topk_prompt_logprobs!.slice(1)) {
      const values = row!.map(([, value]) => value)
      expect(values).toEqual(values.toSorted((a, b) => b - a))
    }
    const last = await sampled(
      one,
      asking(
        id,
        { max_tokens: 1 },
        { prompt: whole, prompt_logprobs: true, prompt_logprobs_last_n: 2 },
      ),
    )
    expect(last.prompt_logprobs!.map((value) => value === null)).toEqual([
      ...Array.from({ length: 7 }, () => true),
      false,
      false,
    ])
  })

  test('#59 a published sampler stays as it is while its model learns', async () => {
    const one = peer()
    const { model } = await sampler(one)
    const save = { model_id: model, seq_id: 1, sampling_session_seq_id: 9 }
    const id = (await one.done('/save_weights_for_sampler', save))['sampling_session_id'] as string
    const before = await sampled(one, asking(id, { max_tokens: 20 }))
    await one.call('/forward_backward', forwardBackward(model, 2, [plain]))
    await one.done('/optim_step', { model_id: model, seq_id: 3, adam_params: { learning_rate: 1 } })
    expect(await sampled(one, asking(id, { max_tokens: 20 }))).toEqual(before)
    expect((await one.call(`/samplers/${id}`)).json).toEqual({
      sampler_id: id,
      base_model: 'bigram',
    })
  })

  test('#30 a submission names each of its sequences', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const { json } = await one.call('/asample', asking(id, {}, { num_samples: 3 }))
    expect(new Set(json['sample_sequence_ids'] as string[]).size).toBe(3)
  })

  test('#36 numbers beyond 2^53 are told apart, and a repeat is the same request', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const text = (seq: string) =>
      JSON.stringify(asking(id)).replace(/"seq_id":\d+/, `"seq_id": ${seq}`)
    const send = async (seq: string) => (await one.call('/asample', text(seq))).json['request_id']
    const first = await send('1000000000000000000')
    expect(await send('1000000000000000001')).not.toBe(first)
    expect(await send('1000000000000000000')).toBe(first)
  })

  test('seeds of 64 bits are told apart', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const text = (seed: string) =>
      JSON.stringify(asking(id, { max_tokens: 20 })).replace(/"seed":\d+/, `"seed":${seed}`)
    const tokens = async (seed: string) => {
      const { json } = await one.call('/asample', text(seed))
      const result = (await one.result(json['request_id'])) as unknown as Sampled
      return result.sequences[0]!.tokens
    }
    expect(await tokens('18446744073709551615')).not.toEqual(await tokens('18446744073709551614'))
  })

  test('#67 a result is JSON or protobuf, as the client accepts', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const { json } = await one.call('/asample', asking(id))
    const ask = (accept: string) =>
      one.call('/retrieve_future', { request_id: json['request_id'] }, { headers: { accept } })
    expect((await ask('application/json')).json).toHaveProperty('sequences')
    const answer = await ask('application/x-protobuf')
    expect(answer.headers.get('content-type')).toBe('application/x-protobuf')
    // SampleResponse.sequences is field 1, length-delimited.
    expect(answer.bytes[0]).toBe(0x0a)
  })

  test('too many at the same time are asked to wait', async () => {
    const one = peer({ limits: { samples: 2 } })
    const { id } = await sampler(one)
    const long = asking(id, { max_tokens: 400 }, { num_samples: 2 })
    const first = await one.call('/asample', long)
    const second = await one.call('/asample', asking(id))
    expect([first.status, second.status]).toEqual([200, 429])
    await one.result(first.json['request_id'])
    expect((await one.call('/asample', asking(id))).status).toBe(200)
  })

  test('a sample can be called off', async () => {
    const one = peer()
    const { id } = await sampler(one)
    const { json } = await one.call('/asample', asking(id, { max_tokens: 500 }))
    const request = { request_id: json['request_id'] }
    expect((await one.call('/cancel_future', request)).status).toBe(204)
    expect(await one.result(json['request_id'])).toMatchObject({ category: 'user' })
  })

  test.each([
    [{ topk_sample_logprobs: 2 }, 'topk_sample_logprobs'],
    [{ prompt_alt_tokens_k: 1 }, 'prompt_alt_tokens_k'],
    [{ target_prompt_logprobs: { data: [1] } }, 'target_prompt_logprobs'],
    [{ record_stability_info: true }, 'record_stability_info'],
  ])('what newer clients may ask for and isn’t here is refused by name: %j', async (more, name) => {
    const one = peer()
    const { id } = await sampler(one)
    const { status, json } = await one.call('/asample', asking(id, {}, more))
    expect(status).toBe(400)
    expect(json['detail']).toContain(name)
  })

  test('old clients name a model without a session', async () => {
    const body = { base_model: 'bigram', prompt, sampling_params: { max_tokens: 2 } }
    expect((await sampled(peer(), body)).sequences[0]!.tokens).toHaveLength(2)
  })

  test('no tokens at all are refused at once, too many fail the future with the numbers', async () => {
    const one = peer()
    const { id } = await sampler(one)
    expect((await one.call('/asample', asking(id, { max_tokens: 0 }))).status).toBe(400)
    expect(await one.done('/asample', asking(id, { max_tokens: 2_000 }))).toEqual({
      category: 'user',
      error: expect.stringMatching(/3 tokens.*2000.*512/) as string,
    })
  })
})

describe('futures', () => {
  test('#23 a question for a result that isn’t there is held, then answered try again', async () => {
    const clock = simulatedClock()
    const one = peer({ clock })
    const { id } = await sampler(one)
    const slow = await one.call('/asample', asking(id, { max_tokens: 500 }))
    const asked = one.call('/retrieve_future', { request_id: slow.json['request_id'] })
    await clock.advance(25_000)
    const { status, json } = await asked
    expect(status).toBe(408)
    expect(json).toEqual({
      type: 'try_again',
      request_id: slow.json['request_id'],
      queue_state: 'active',
    })
  })

  test('#24 many may ask, and ask again, until some time after the first answer', async () => {
    const clock = simulatedClock()
    const one = peer({ clock, limits: { sessionMs: 10_000_000 } })
    const { id } = await sampler(one)
    const { json } = await one.call('/asample', asking(id))
    const ask = () => one.call('/retrieve_future', { request_id: json['request_id'] })
    const answers = await Promise.all([ask(), ask(), ask()])
    for (const answer of answers) expect(answer.json).toEqual(answers[0].json)
    await clock.advance(290_000)
    expect((await ask()).status).toBe(200)
    for (let passed = 0; passed < 320_000; passed += 5_000) await clock.advance(5_000)
    expect((await ask()).status).toBe(404)
  })

  test('#25 #26 a failure is a 200 with a category; an unknown id a 404', async () => {
    const one = peer()
    const { model } = await one.model()
    const { json } = await one.call('/forward_backward', forwardBackward(model, 1, []))
    const answer = await one.call('/retrieve_future', { request_id: json['request_id'] })
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({ category: 'user', error: 'no data given' })
    expect((await one.call('/retrieve_future', { request_id: 'r-1' })).status).toBe(404)
  })

  test('a session whose client died is ended, and others are not', async () => {
    const clock = simulatedClock()
    const one = peer({ clock, limits: { sessionMs: 60_000 } }, bigramBackend())
    const dead = await one.model()
    const alive = await one.model()
    for (let passed = 0; passed < 90_000; passed += 5_000) {
      await clock.advance(5_000)
      await one.call('/session_heartbeat', { session_id: alive.session })
    }
    expect((await one.call('/session_heartbeat', { session_id: dead.session })).status).toBe(410)
    expect((await one.call('/get_info', { model_id: dead.model })).status).toBe(404)
    expect((await one.call('/get_info', { model_id: alive.model })).status).toBe(200)
  })
})
