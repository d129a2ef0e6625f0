import { bigramBackend } from '@tiltyard/testkit'
import { afterEach, describe, expect, test } from 'vitest'

import { tinkerServer, type TinkerServer } from '../src/index.ts'
import { forwardBackward, peer, plain } from './peer.ts'

const open: TinkerServer[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

async function listening(options: object = {}) {
  const server = tinkerServer({ backend: bigramBackend(), ...options })
  open.push(server)
  return server.listen()
}

describe('transport', () => {
  test('#1 whatever stands before /api/v1 in an address is fine', async () => {
    const url = await listening()
    for (const prefix of ['', '/svc', '/deep/er'])
      expect((await fetch(`${url}${prefix}/api/v1/healthz`)).status).toBe(200)
  })

  test('#2 without a list of keys anybody on loopback is let in; no key and no body is logged', async () => {
    const { call, log } = peer()
    for (const headers of [{}, { 'x-api-key': 'tml-SENTINEL' }]) {
      const { status } = await call('/create_session', { tags: ['SENTINEL'] }, { headers })
      expect(status).toBe(200)
    }
    await call('/asample', 'SENTINEL, no JSON', { headers: { 'x-api-key': 'tml-SENTINEL' } })
    await call('/telemetry', { events: [{ event_data: { 'X-API-Key': 'tml-SENTINEL' } }] })
    expect(log.length).toBeGreaterThan(0)
    expect(JSON.stringify(log)).not.toContain('SENTINEL')
  })

  test('with a list of keys only those are let in, and the answer repeats none', async () => {
    const { call } = peer({ keys: ['tml-the-right-one'] })
    expect(
      (await call('/healthz', undefined, { headers: { 'x-api-key': 'tml-the-right-one' } })).status,
    ).toBe(200)
    const bearer = { authorization: 'Bearer tml-the-right-one' }
    expect((await call('/healthz', undefined, { headers: bearer })).status).toBe(200)
    for (const headers of [{}, { 'x-api-key': 'tml-another-one' }]) {
      const { status, json } = await call('/healthz', undefined, { headers })
      expect(status).toBe(401)
      expect(JSON.stringify(json)).not.toContain('another')
    }
  })

  test('beyond loopback a list of keys is needed', async () => {
    const server = tinkerServer({ backend: bigramBackend() })
    await expect(server.listen({ host: '0.0.0.0' })).rejects.toThrow('keys')
    await server.close()
  })

  test('#3 every answer tells its length', async () => {
    const url = await listening()
    const answers = await Promise.all([
      fetch(`${url}/api/v1/healthz`),
      fetch(`${url}/api/v1/nothing`),
      fetch(`${url}/api/v1/asample`, { method: 'POST', body: 'x' }),
      fetch(`${url}/api/v1/telemetry`, { method: 'POST', body: '{}' }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 400, 200])
    for (const answer of answers) {
      const length = Number(answer.headers.get('content-length'))
      expect(length).toBeGreaterThan(0)
      expect((await answer.arrayBuffer()).byteLength).toBe(length)
    }
  })

  test('#4 fields that nobody knows are passed over', async () => {
    const { call } = peer()
    const body = { tags: [], sdk_version: '9.9.9', display_name: 'x', tomorrow: { a: 1 } }
    expect((await call('/create_session', body, { headers: { 'x-new': '1' } })).status).toBe(200)
  })

  test('#5 a call that isn’t there is a 404 with a detail', async () => {
    const { status, json } = await peer().call('/billing/usage/events')
    expect(status).toBe(404)
    expect(json).toEqual({ detail: 'no such call here' })
  })

  test('bodies that are too long, cut, compressed or of another shape are refused; the next is served', async () => {
    const { call } = peer({ limits: { bodyBytes: 1_000 } })
    const session = '/create_session'
    const cases: readonly (readonly [unknown, object, number])[] = [
      [`{"tags":["${'x'.repeat(2_000)}"]}`, {}, 413],
      ['{"tags":[', {}, 400],
      [Uint8Array.of(0xff, 0xfe), {}, 400],
      ['{"tags":"no list"}', {}, 400],
      ['{}', { 'content-encoding': 'zstd' }, 415],
    ]
    for (const [body, headers, wanted] of cases) {
      const { status, json } = await call(session, body, { headers: { ...headers } })
      expect(status).toBe(wanted)
      expect(json['detail']).toEqual(expect.any(String))
    }
    const cut = await call('/forward_backward', Uint8Array.of(0x0a, 0x7f), {
      headers: { 'content-type': 'application/x-protobuf' },
    })
    expect(cut.status).toBe(400)
    expect((await call(session, { tags: [] })).status).toBe(200)
  })

  test('a length that isn’t told is counted', async () => {
    const url = await listening({ limits: { bodyBytes: 1_000 } })
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(500).fill(32))
      },
    })
    const refused = await fetch(`${url}/api/v1/create_session`, {
      method: 'POST',
      body: endless,
      duplex: 'half',
    }).then(
      ({ status }) => status,
      () => 413,
    )
    expect(refused).toBe(413)
    expect((await fetch(`${url}/api/v1/healthz`)).status).toBe(200)
  })
})

describe('sessions', () => {
  test('#13 the start: settings that old and new clients understand', async () => {
    const { call } = peer()
    expect((await call('/client/config', { sdk_version: '0.25.0' })).json).toEqual({
      pjwt_auth_enabled: false,
      use_pyqwest_transport: false,
      parallel_fwdbwd_chunks: true,
    })
    expect((await call('/client/dynamic_config', {})).json['refresh_interval_sec']).toBe(300)
  })

  test('#14 #16 a session has an id and hears its heartbeat; another is unknown', async () => {
    const { call } = peer()
    const { json } = await call('/create_session', { tags: [], user_metadata: null })
    expect(json).toEqual({ type: 'create_session', session_id: expect.any(String) })
    const beat = await call('/session_heartbeat', { session_id: json['session_id'] })
    expect(beat.json).toEqual({ type: 'session_heartbeat' })
    expect((await call('/session_heartbeat', { session_id: 'nobody' })).status).toBe(404)
  })

  test('a finished session is over for its client, and its models with it', async () => {
    const { call, model: open2 } = peer()
    const { session, model } = await open2()
    expect(
      (await call(`/sessions/${session}/finish`, { reason: { type: 'success' } })).status,
    ).toBe(204)
    expect((await call('/session_heartbeat', { session_id: session })).status).toBe(410)
    expect((await call('/forward_backward', forwardBackward(model, 1, [plain]))).status).toBe(404)
  })

  test('#17 capabilities list each model with its context length', async () => {
    const { json } = await peer().call('/get_server_capabilities')
    expect(json['supported_models']).toEqual([
      { model_name: 'bigram', max_context_length: 512, trainable: true, sampleable: true },
    ])
  })

  test('sessions are listed with what they hold', async () => {
    const { call, model: open2 } = peer()
    const { session, model } = await open2()
    expect((await call('/sessions')).json).toEqual({ sessions: [session] })
    expect((await call(`/sessions/${session}`)).json).toEqual({
      training_run_ids: [model],
      sampler_ids: [],
    })
  })

  test('there are at most so many sessions and models', async () => {
    const { call, model: open2 } = peer({ limits: { sessions: 1, models: 1 } })
    const { session } = await open2()
    expect((await call('/create_session', { tags: [] })).status).toBe(429)
    const more = {
      session_id: session,
      model_seq_id: 1,
      base_model: 'bigram',
      lora_config: { rank: 1 },
    }
    expect((await call('/create_model', more)).status).toBe(429)
  })
})
