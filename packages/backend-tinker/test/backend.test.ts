import { TiltyardError, tokenPrompt, type Logger } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { HOSTED_URL, tinkerBackend, tinkerClient } from '../src/index.ts'
import { fakeService, json, type Answer } from './fake-service.ts'

const path = 'tinker://s:train:0/weights/one'

function open(answer: Answer) {
  const service = fakeService(answer)
  const options = { baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch }
  return { service, backend: tinkerBackend(options), client: tinkerClient(options) }
}

const code = (wanted: string) => (error: unknown) => TiltyardError.is(error, wanted)

const sampling: Answer = ({ path: at, json: body }) => {
  if (at === '/create_sampling_session') return json({ sampling_session_id: 'x' })
  if (at === '/asample') return json({ request_id: String(body['seq_id']) })
  if (at !== '/retrieve_future') return undefined
  const sequence = { tokens: [Number(body['request_id'])], logprobs: [-1], stop_reason: 'stop' }
  return json({ sequences: [sequence] })
}

const listed = (index: number) => ({
  checkpoint_id: `weights/c${index}`,
  checkpoint_type: index === 0 ? 'sampler' : 'training',
  time: '2026-11-29T10:00:00Z',
  tinker_path: `tinker://r/weights/c${index}`,
  size_bytes: 5,
})

describe('what a service can', () => {
  test('is what the hosted service documents, where it doesn’t tell', async () => {
    const { backend } = open(() => undefined)
    expect(await backend.describe()).toEqual({
      models: [{ name: 'toy', contextWindow: 64 }],
      losses: ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro'],
      mask: false,
      images: true,
      topLogprobs: true,
      deterministic: false,
      adaptations: ['lora'],
      executor: 'tinker service at x.test',
    })
  })

  test('F47: the first try again is told at once, where the run logs, unless it has a logger of its own', async () => {
    const logs = (): { readonly logger: Logger; readonly lines: string[] } => {
      const lines: string[] = []
      const line = (text: string) => void lines.push(text)
      return { lines, logger: { debug: line, info: line, warn: line, error: line } }
    }
    const [own, run] = [logs(), logs()]
    for (const logger of [undefined, own.logger]) {
      const clock = simulatedClock()
      const told: number[] = []
      const listening = {
        ...run.logger,
        warn: (text: string) => {
          told.push(clock.now())
          run.lines.push(text)
        },
      }
      const backend = tinkerBackend({
        baseUrl: 'http://127.0.0.1:9',
        apiKey: 'k',
        fetch: () => Promise.reject(new TypeError('fetch failed')),
        clock,
        deadlines: { retries: 20_000 },
        ...(logger === undefined ? {} : { logger }),
      })
      backend.logTo?.(listening)
      const began = clock.now()
      const failed = clock.drive(backend.describe())
      await expect(failed).rejects.toMatchObject({ code: 'TINKER_UNREACHABLE' })
      expect(told.slice(0, 1)).toEqual(logger === undefined ? [began] : [])
    }
    expect(run.lines[0]).toBe(own.lines[0])
    expect(run.lines[0]).toContain('trying again to')
  })

  test('a wrong model name names the nearest', async () => {
    const { backend } = open(() => undefined)
    await expect(backend.sampler({ model: 'toi' })).rejects.toThrow('did you mean "toy"?')
    await expect(backend.sampler({ model: 'toi' })).rejects.toSatisfy(code('NOT_FOUND'))
  })

  test('training a whole model, or a scale for adapters, is refused with what to do', async () => {
    const { backend } = open(() => undefined)
    await expect(backend.learner({ model: 'toy', adaptation: 'full' })).rejects.toThrow('rank')
    await expect(
      backend.learner({ model: 'toy', adaptation: { rank: 4, alpha: 8 } }),
    ).rejects.toThrow('alpha')
    await expect(
      backend.learner({
        model: 'toy',
        adaptation: { rank: 4 },
        from: { path: 'tinker://r/sampler_weights/n', kind: 'sampling' },
      }),
    ).rejects.toThrow('sampling only')
  })
})

describe('samples', () => {
  test('a request with seeds is one call per seed, in order', async () => {
    const { backend, service } = open(sampling)
    const sampler = await backend.sampler({ model: 'toy' })
    const samples = await sampler.sample({
      prompt: tokenPrompt([1]),
      maxTokens: 2,
      n: 3,
      seeds: [7, 8, 9],
    })
    expect(samples.map(({ ids }) => ids[0])).toEqual([0, 1, 2])
    const params = service.at('/asample').map((one) => one.json['sampling_params'])
    expect(params).toMatchObject([{ seed: 7 }, { seed: 8 }, { seed: 9 }])
  })

  test('too few samples are an error, not a short list', async () => {
    const { backend } = open(sampling)
    const sampler = await backend.sampler({ model: 'toy' })
    await expect(sampler.sample({ prompt: tokenPrompt([1]), maxTokens: 2, n: 2 })).rejects.toThrow(
      '1 samples where 2',
    )
  })

  test('stop tokens and stop strings together are refused', async () => {
    const { backend } = open(sampling)
    const sampler = await backend.sampler({ model: 'toy' })
    const stop = { tokens: [1], strings: ['x'] }
    await expect(
      sampler.sample({ prompt: tokenPrompt([1]), maxTokens: 2, stop }),
    ).rejects.toSatisfy(code('UNSUPPORTED'))
  })

  test('a prompt that doesn’t fit is refused before it is sent, with the numbers', async () => {
    const { backend, service } = open(sampling)
    const sampler = await backend.sampler({ model: 'toy' })
    await expect(
      sampler.sample({ prompt: tokenPrompt(new Int32Array(60)), maxTokens: 5 }),
    ).rejects.toThrow(/60.*5.*64/)
    expect(service.at('/asample')).toHaveLength(0)
  })
})

describe('checkpoints', () => {
  test('are listed page by page', async () => {
    const { backend, service } = open(({ path: at }) => {
      if (!at.startsWith('/checkpoints')) return undefined
      const offset = Number(new URLSearchParams(at.split('?')[1]).get('offset'))
      const left = Math.min(100, 130 - offset)
      return json({
        checkpoints: Array.from({ length: left }, (_, index) => listed(offset + index)),
      })
    })
    const all = await backend.checkpoints().list()
    expect(all).toHaveLength(130)
    expect(all[0]).toEqual({
      path: 'tinker://r/weights/c0',
      kind: 'sampling',
      name: 'c0',
      createdAt: Date.UTC(2026, 10, 29, 10),
      bytes: 5,
    })
    expect(service.asked.filter(({ path: at }) => at.startsWith('/checkpoints'))).toHaveLength(2)
  })

  test('one that has expired, or never was, says so', async () => {
    const { backend } = open(() => undefined)
    const from = { path, kind: 'training' } as const
    const opening = backend.learner({ model: 'toy', adaptation: { rank: 4 }, from })
    await expect(opening).rejects.toThrow('its time may have run out')
    expect(await backend.checkpoints().exists(from)).toBe(false)
    await expect(backend.checkpoints().delete(from)).resolves.toBeUndefined()
  })

  test('a loaded learner goes on counting steps, where the checkpoint tells them', async () => {
    const { backend, service } = open(({ path: at }) => {
      if (at === '/weights_info') return json({ base_model: 'toy', is_lora: true, lora_rank: 4 })
      if (at === '/create_model' || at === '/load_weights') return json({ request_id: 'r' })
      if (at === '/retrieve_future') return json({ model_id: 's:train:0', path })
      if (at === '/training_runs/s:train:0/checkpoints')
        return json({
          checkpoints: [
            {
              checkpoint_id: 'weights/one',
              checkpoint_type: 'training',
              time: '',
              tinker_path: path,
              user_metadata: { optimizer_steps: '12' },
            },
          ],
        })
      return undefined
    })
    const learner = await backend.learner({
      model: 'toy',
      adaptation: { rank: 4 },
      from: { path, kind: 'training' },
      optimizer: false,
    })
    expect(learner.steps).toBe(12)
    expect(service.at('/load_weights')[0]!.json).toEqual({
      model_id: 's:train:0',
      seq_id: 1,
      path,
      optimizer: false,
      type: 'load_weights',
    })
    expect(service.at('/create_model')[0]!.json['lora_config']).toMatchObject({ rank: 4 })
  })

  test('a service that makes a model by loading is asked in one call', async () => {
    const service = fakeService(
      ({ path: at }) => {
        if (at === '/weights_info') return json({ base_model: 'toy', is_lora: true, lora_rank: 4 })
        if (at === '/load_weights') return json({ request_id: 'r' })
        if (at === '/retrieve_future') return json({ path })
        return undefined
      },
      { create_model_via_load_weights: true },
    )
    const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
    const model = await client.loadModel(path)
    expect(model.id).toBe('s:train:0')
    expect(service.at('/create_model')).toHaveLength(0)
    expect(service.at('/load_weights')[0]!.json).toMatchObject({ session_id: 's', model_seq_id: 0 })
  })
})

describe('the service’s own verbs', () => {
  test('a path’s parts go into the address as they are; what is no path is refused', async () => {
    const { client, service } = open(({ method }) =>
      method === 'GET' ? undefined : new Response(null, { status: 204 }),
    )
    await client.rest.deleteCheckpoint(path)
    await client.rest.setTtl(path, 600)
    await client.rest.setTtl(path, undefined)
    await client.rest.publishCheckpoint(path)
    await client.rest.unpublishCheckpoint(path)
    const one = '/training_runs/s:train:0/checkpoints/weights/one'
    expect(
      service.asked.slice(2).map(({ method, path: at, json: body }) => [method, at, body]),
    ).toEqual([
      ['DELETE', one, {}],
      ['PUT', `${one}/ttl`, { ttl_seconds: 600 }],
      ['PUT', `${one}/ttl`, { ttl_seconds: null }],
      ['POST', `${one}/publish`, {}],
      ['DELETE', `${one}/publish`, {}],
    ])
    for (const wrong of [
      'weights/one',
      'tinker://r/other/n',
      'tinker://r/weights/n/x',
      'tinker://../weights/n?x',
    ])
      await expect(client.rest.deleteCheckpoint(wrong)).rejects.toSatisfy(code('NOT_FOUND'))
  })

  test('an archive is where the service points to, by a redirect or in words', async () => {
    const expires = 'Sun, 29 Nov 2026 12:00:00 GMT'
    const redirected = open(({ path: at }) =>
      at.endsWith('/archive')
        ? new Response(null, { status: 302, headers: { location: 'http://store.test/a', expires } })
        : undefined,
    )
    expect(await redirected.client.rest.archive(path)).toEqual({
      url: 'http://store.test/a',
      expires: Date.parse(expires),
    })
    const told = open(({ path: at }) =>
      at.endsWith('/archive') ? json({ url: 'http://store.test/b', expires }) : undefined,
    )
    expect((await told.client.rest.archive(path)).url).toBe('http://store.test/b')
  })

  test('the hosted service is where it is said to be', () => {
    expect(HOSTED_URL).toBe('https://tinker.thinkingmachines.dev/services/tinker-prod')
  })
})
