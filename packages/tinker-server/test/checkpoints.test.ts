import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'

import { bigramBackend } from '@tiltyard/testkit'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { folderLedgerStore } from '../src/index.ts'
import { forwardBackward, logprobsOf, peer, plain, type Peer } from './peer.ts'

afterEach(() => {
  vi.useRealTimers()
})

const step = async ({ call, done }: Peer, model: string, first: number) => {
  await call('/forward_backward', forwardBackward(model, first, [plain]))
  await done('/optim_step', {
    model_id: model,
    seq_id: first + 1,
    adam_params: { learning_rate: 0.1 },
  })
}
const see = async ({ done }: Peer, model: string, seq: number) =>
  logprobsOf(
    await done('/forward', {
      model_id: model,
      seq_id: seq,
      forward_input: { data: [plain], loss_fn: 'cross_entropy' },
    }),
  )
const save = ({ done }: Peer, model: string, seq: number, more: object = {}) =>
  done('/save_weights', { model_id: model, seq_id: seq, path: 'one', ...more })

describe('saving and loading', () => {
  test.each([true, false])(
    '#53 a loaded model goes on as the saved one; optimizer: %s',
    async (optimizer) => {
      const one = peer()
      const { session, model } = await one.model()
      await step(one, model, 1)
      const { path } = await save(one, model, 3)
      expect(path).toBe(`tinker://${model}/weights/one`)
      const body = {
        session_id: session,
        model_seq_id: 1,
        base_model: 'bigram',
        lora_config: { rank: 4 },
      }
      await one.done('/create_model', body)
      const other = `${session}:train:1`
      const loaded = await one.done('/load_weights', {
        model_id: other,
        seq_id: 1,
        path,
        optimizer,
      })
      expect(loaded).toEqual({ type: 'load_weights', path, model_id: other })
      await step(one, model, 4)
      await step(one, other, 2)
      const [continued, fresh] = [await see(one, model, 6), await see(one, other, 4)]
      expect(isDeepStrictEqual(fresh, continued)).toBe(optimizer)
    },
  )

  test('a model can be made by loading, with the adapters of its checkpoint', async () => {
    const one = peer()
    const { session, model } = await one.model()
    await step(one, model, 1)
    const { path } = await save(one, model, 3)
    const made = await one.done('/load_weights', {
      session_id: session,
      model_seq_id: 7,
      path,
      optimizer: true,
    })
    expect(made).toEqual({ type: 'load_weights', path, model_id: `${session}:train:7` })
    expect(await see(one, `${session}:train:7`, 1)).toEqual(await see(one, model, 4))
    expect(
      (await one.call('/get_info', { model_id: `${session}:train:7` })).json['lora_rank'],
    ).toBe(4)
  })

  test('#54 loading after another call is refused in the protocol’s words', async () => {
    const one = peer()
    const { model } = await one.model()
    const { path } = await save(one, model, 1)
    const { status, json } = await one.call('/load_weights', {
      model_id: model,
      seq_id: 2,
      path,
      optimizer: true,
    })
    expect(status).toBe(400)
    expect(json['detail']).toBe('LoadWeights is not permitted with seq_id 2')
  })

  test('#55 both kinds of path tell what they were made from; another is a 404', async () => {
    const one = peer()
    const { model } = await one.model()
    const { path } = await save(one, model, 1)
    const published = await one.done('/save_weights_for_sampler', {
      model_id: model,
      seq_id: 2,
      path: 's1',
    })
    expect(published['path']).toBe(`tinker://${model}/sampler_weights/s1`)
    for (const each of [path, published['path']])
      expect((await one.call('/weights_info', { tinker_path: each })).json).toMatchObject({
        base_model: 'bigram',
        is_lora: true,
        lora_rank: 4,
      })
    expect((await one.call('/weights_info', { tinker_path: `${String(path)}x` })).status).toBe(404)
  })

  test('#56 a name that is taken fails at once; overwriting replaces it', async () => {
    const one = peer()
    const { session, model } = await one.model()
    const { path } = await save(one, model, 1)
    await step(one, model, 2)
    expect(await save(one, model, 4)).toEqual({
      category: 'user',
      error: expect.stringContaining('already exists') as string,
    })
    expect(await save(one, model, 5, { overwrite: true })).toMatchObject({ path })
    await one.done('/load_weights', { session_id: session, model_seq_id: 1, path, optimizer: true })
    expect(await see(one, `${session}:train:1`, 1)).toEqual(await see(one, model, 6))
  })

  test.each(['../up', 'a/b', '', '.hidden', 'x'.repeat(300)])(
    'the name "%s" is refused',
    async (name) => {
      const one = peer()
      const { model } = await one.model()
      expect(await save(one, model, 1, { path: name })).toMatchObject({ category: 'user' })
    },
  )

  test('a sampler is opened from a published path, not from a training one', async () => {
    const one = peer()
    const { session, model } = await one.model()
    const { path } = await save(one, model, 1)
    const published = await one.done('/save_weights_for_sampler', {
      model_id: model,
      seq_id: 2,
      path: 's1',
    })
    const open = (number: number, of: unknown) =>
      one.call('/create_sampling_session', {
        session_id: session,
        sampling_session_seq_id: number,
        model_path: of,
      })
    const opened = await open(0, published['path'])
    expect(opened.status).toBe(200)
    const id = opened.json['sampling_session_id'] as string
    expect((await one.call(`/samplers/${id}`)).json['model_path']).toBe(published['path'])
    expect((await open(1, path)).json['detail']).toContain('sampler_weights')
    expect((await open(2, `tinker://${model}/sampler_weights/none`)).status).toBe(404)
  })
})

const addressOf = (model: string) => `/training_runs/${model}/checkpoints/weights/one`

describe('looking after checkpoints', () => {
  test('#57 what has a time to live goes when it is over; without one it stays', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const backend = bigramBackend()
    const it = peer({}, backend)
    const { model } = await it.model()
    const { path } = await save(it, model, 1, { ttl_seconds: 3_600 })
    expect((await it.call('/checkpoints')).json['checkpoints']).toHaveLength(1)
    vi.setSystemTime(Date.now() + 3_601_000)
    expect((await it.call('/checkpoints')).json['checkpoints']).toHaveLength(0)
    expect((await it.call('/weights_info', { tinker_path: path })).status).toBe(404)
    const { path: kept } = await save(it, model, 2, { path: 'two', ttl_seconds: 3_600 })
    const ttl = `/training_runs/${model}/checkpoints/weights/two/ttl`
    expect((await it.call(ttl, { ttl_seconds: null }, { method: 'PUT' })).status).toBe(204)
    vi.setSystemTime(Date.now() + 99_999_000)
    expect((await it.call('/weights_info', { tinker_path: kept })).status).toBe(200)
  })

  test('#58 checkpoints are listed, made public and private, and deleted', async () => {
    const backend = bigramBackend()
    const it = peer({}, backend)
    const { model } = await it.model()
    await save(it, model, 1, { user_metadata: { note: 'mine' } })
    const listed = (await it.call(`/training_runs/${model}/checkpoints`)).json['checkpoints']
    expect(listed).toEqual([
      {
        checkpoint_id: 'weights/one',
        checkpoint_type: 'training',
        time: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        tinker_path: `tinker://${model}/weights/one`,
        public: false,
        size_bytes: expect.any(Number) as number,
        user_metadata: { note: 'mine' },
      },
    ])
    expect((await it.call(`${addressOf(model)}/publish`, {})).status).toBe(204)
    expect((await it.call(`${addressOf(model)}/publish`, {})).status).toBe(409)
    expect((await it.call(`${addressOf(model)}/publish`, {}, { method: 'DELETE' })).status).toBe(
      204,
    )
    expect((await it.call(addressOf(model), {}, { method: 'DELETE' })).status).toBe(204)
    expect((await it.call(addressOf(model), {}, { method: 'DELETE' })).status).toBe(404)
    expect(await backend.checkpoints().list()).toEqual([])
  })

  test('runs are listed, newest first, page by page', async () => {
    const it = peer()
    const [first, second] = [await it.model(), await it.model()]
    await save(it, first.model, 1)
    const { json } = await it.call('/training_runs?limit=1&offset=1')
    expect(json['cursor']).toEqual({ offset: 1, limit: 1, total_count: 2 })
    const run = (await it.call(`/training_runs/${first.model}`)).json
    expect(run).toMatchObject({
      training_run_id: first.model,
      base_model: 'bigram',
      is_lora: true,
      lora_rank: 4,
      last_checkpoint: { tinker_path: `tinker://${first.model}/weights/one` },
    })
    expect((await it.call(`/training_runs/${second.model}/checkpoints`)).json).toEqual({
      checkpoints: [],
    })
    expect((await it.call('/training_runs/nobody')).status).toBe(404)
    expect((await it.call('/training_runs?limit=many')).status).toBe(400)
  })

  test('a server that starts again knows the checkpoints of its folder, and passes over what is damaged', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tinker-server-'))
    try {
      const backend = bigramBackend()
      const before = peer({ ledger: folderLedgerStore(join(folder, 'ledger')) }, backend)
      const { model } = await before.model()
      const { path } = await save(before, model, 1)
      await before.server.close()
      await writeFile(join(folder, 'ledger', 'damaged.json'), '{"path":')
      const after = peer({ ledger: folderLedgerStore(join(folder, 'ledger')) }, backend)
      const { session } = await after.model()
      const loaded = await after.done('/load_weights', {
        session_id: session,
        model_seq_id: 3,
        path,
        optimizer: true,
      })
      expect(loaded).toMatchObject({ path })
      expect(after.log.map(([message]) => message)).toContain(
        'an entry of the checkpoint ledger can’t be read',
      )
      expect(await readdir(join(folder, 'ledger'))).toHaveLength(2)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

test('a server that closes lets what is under way finish', async () => {
  const it = peer()
  const { session } = await it.model()
  const opened = await it.call('/create_sampling_session', {
    session_id: session,
    sampling_session_seq_id: 0,
    base_model: 'bigram',
  })
  const { json } = await it.call('/asample', {
    sampling_session_id: opened.json['sampling_session_id'],
    seq_id: 0,
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1] }] },
    sampling_params: { max_tokens: 300 },
  })
  const result = it.result(json['request_id'])
  await Promise.all([it.server.close(), it.server.close()])
  expect(await result).toHaveProperty('sequences')
})
