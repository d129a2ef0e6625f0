import { readFileSync } from 'node:fs'

import type { JsonObject, JsonValue } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { openenvServer, type OpenEnvServer, type OpenEnvServerOptions } from '../src/index.ts'
import { rawClient } from './support/client.ts'
import { rightRule, type SumsSource, sumsSource } from './support/sums.ts'

interface Exchange {
  readonly client?: JsonValue
  readonly client_raw?: string
  readonly server?: JsonObject
  readonly http?: string
  readonly body?: JsonValue
  readonly answer?: JsonObject
}

const recorded = JSON.parse(
  readFileSync(new URL('vectors/frames-0.2.3.json', import.meta.url), 'utf8'),
) as { readonly sections: readonly { readonly name: string; readonly exchange: Exchange[] }[] }

const section = (name: string) => recorded.sections.find((each) => each.name === name)!.exchange

let source: SumsSource
let server: OpenEnvServer
let base: string

async function serve(options: Partial<OpenEnvServerOptions> = {}): Promise<void> {
  await server?.close()
  source = sumsSource()
  server = openenvServer({ source, reward: rightRule, splits: ['train'], ...options })
  base = await server.listen()
  // The server has looked at a first task's tools.
  source.ends.length = 0
}

beforeEach(() => serve())
afterEach(() => server.close())

const callAdd = (a: number, b: number) => ({
  type: 'step',
  data: { type: 'call_tool', tool_name: 'add', arguments: { a, b } },
})

describe('an episode over a socket', () => {
  test('reset shows messages and tools; calls are answered; the last end_turn brings reward and scores', async () => {
    const client = await rawClient(base)
    const first = await client.ask({
      type: 'reset',
      data: { task_id: 'two-turns', seed: 7, episode_id: 'e1' },
    })
    expect(first).toMatchObject({
      type: 'observation',
      data: {
        observation: {
          messages: [
            { role: 'system', content: 'You add numbers.' },
            { role: 'user', content: 'What is 7 + 2?' },
          ],
          tools: [{ name: 'add' }, { name: 'fail' }],
          task_id: 'two-turns',
          turn: 0,
        },
        reward: null,
        done: false,
      },
    })
    expect(await client.ask(callAdd(7, 2))).toMatchObject({
      data: {
        observation: { tool_name: 'add', result: { data: '9', is_error: false }, error: null },
        reward: null,
        done: false,
      },
    })
    const second = await client.ask({ type: 'step', data: { type: 'end_turn', text: 'It is 9.' } })
    expect(second).toEqual({
      type: 'observation',
      data: {
        observation: {
          messages: [
            { role: 'system', content: 'You add once more.' },
            { role: 'user', content: 'What is 8 + 2?' },
          ],
          task_id: 'two-turns',
          turn: 1,
        },
        reward: null,
        done: false,
      },
    })
    const last = await client.ask({
      type: 'step',
      data: { tool_name: 'end_turn', arguments: { text: 'no idea' } },
    })
    expect(last).toMatchObject({
      data: {
        reward: 0.5,
        done: true,
        metadata: { scores: { right: 0.5, calls: 1 }, end: 'completed' },
      },
    })
    expect(await client.ask({ type: 'state' })).toEqual({
      type: 'state',
      data: { episode_id: 'e1', step_count: 3, task_id: 'two-turns', turn: 1, done: true },
    })
    expect(await client.ask(callAdd(1, 1))).toEqual({
      type: 'error',
      data: { message: 'the episode is over; reset begins another', code: 'EXECUTION_ERROR' },
    })
    expect(source.ends).toEqual([{ kind: 'completed' }])
  })

  test('a reset ends a live episode as cancelled; so does a socket that closes in mid-episode', async () => {
    const client = await rawClient(base)
    await client.ask({ type: 'reset' })
    await client.ask({ type: 'reset' })
    expect(source.ends).toEqual([{ kind: 'cancelled' }])
    client.socket.terminate()
    await vi.waitFor(() => expect(source.ends).toHaveLength(2), { timeout: 60_000 })
    expect(server.activeSessions).toBe(0)
  })

  test('a client that leaves while a call runs has the call aborted and its place freed', async () => {
    const client = await rawClient(base)
    await client.ask({ type: 'reset' })
    client.send(callAdd(-1, 0))
    client.socket.terminate()
    await vi.waitFor(() => expect(server.activeSessions).toBe(0), { timeout: 60_000 })
    await vi.waitFor(() => expect(source.ends).toHaveLength(1), { timeout: 60_000 })
  })

  test('an environment that breaks fails its episode, with its own words, and the next reset plays', async () => {
    const client = await rawClient(base)
    await client.ask({ type: 'reset' })
    expect(await client.ask(callAdd(13, 0))).toEqual({
      type: 'error',
      data: { message: 'thirteen', code: 'EXECUTION_ERROR' },
    })
    expect(source.ends).toMatchObject([{ kind: 'failed', phase: 'tool' }])
    expect(await client.ask({ type: 'reset' })).toMatchObject({ type: 'observation' })
  })

  test('a call beyond the limit cuts the episode; what is unscored is no reward', async () => {
    await serve({ limits: { toolCalls: 1 } })
    const client = await rawClient(base)
    await client.ask({ type: 'reset', data: { seed: 1 } })
    await client.ask(callAdd(1, 2))
    expect(await client.ask(callAdd(1, 2))).toEqual({
      type: 'error',
      data: { message: 'unscored: nobody answered', code: 'EXECUTION_ERROR' },
    })
    expect(source.ends).toEqual([{ kind: 'cut', by: 'tool_calls' }])
  })

  test('the same task and seed are the same again; unnamed resets go through the tasks', async () => {
    const client = await rawClient(base)
    const prompt = (frame: JsonObject) =>
      (frame['data'] as { observation: { messages: JsonValue; task_id: string } }).observation
    const named = { type: 'reset', data: { split: 'train', index: 1, seed: 3 } }
    expect(await client.ask(named)).toEqual(await client.ask(named))
    const ids = [await client.ask({ type: 'reset' }), await client.ask({ type: 'reset' })]
    expect(ids.map((frame) => prompt(frame).task_id)).toEqual(['one-turn', 'two-turns'])
  })

  test('what is not there is said with what is', async () => {
    const client = await rawClient(base)
    const ask = async (data: JsonObject) =>
      ((await client.ask({ type: 'reset', data }))['data'] as JsonObject)['message']
    expect(await ask({ task_id: 'nope' })).toBe('there is no task "nope" in all')
    expect(await ask({ split: 'nope' })).toBe('there is no split "nope"; there is all, train')
    expect(await ask({ split: 'train', index: 9 })).toBe('train has 2 tasks; there is no index 9')
    expect(await client.ask(callAdd(1, 1))).toMatchObject({
      data: { message: 'no episode is under way; reset begins one' },
    })
  })

  test('metadata is repeated inside the observation for older clients', async () => {
    await serve({ nestedMetadata: true })
    const client = await rawClient(base)
    await client.ask({ type: 'reset', data: { index: 0, seed: 1 } })
    const last = await client.ask({ type: 'step', data: { type: 'end_turn', text: '3' } })
    expect(last).toMatchObject({
      data: {
        metadata: { scores: { right: 1 } },
        observation: { metadata: { scores: { right: 1 } } },
      },
    })
  })
})

describe('recorded traffic of the official server', () => {
  /** Type and code, and the kinds and places of what didn't fit; the texts are pydantic's. */
  const essence = (frame: JsonObject) => {
    const data = frame['data'] as JsonObject
    const errors = data['errors'] as readonly JsonObject[] | undefined
    return {
      type: frame['type'],
      code: data['code'],
      keys:
        data['code'] === undefined && frame['type'] === 'observation'
          ? Object.keys(data).sort()
          : [],
      errors: (errors ?? []).map(({ type, loc }) => ({ type, loc })),
    }
  }

  test('frames of the tool environment: tools, results, errors, state', async () => {
    const client = await rawClient(base)
    for (const [index, { client: frame }] of section(
      'mcp env: MCPToolClient (0.2.3: over /ws)',
    ).entries()) {
      const answer = section('mcp env: MCPToolClient (0.2.3: over /ws)')[index + 1]?.server
      if (frame === undefined || answer === undefined) continue
      const given = await client.ask(frame)
      expect(essence(given), JSON.stringify(frame)).toEqual(essence(answer))
      const [wanted, got] = [answer, given].map(
        (each) => ((each['data'] as JsonObject)['observation'] ?? {}) as JsonObject,
      )
      if (wanted?.['tool_name'] === undefined) continue
      expect(Object.keys(got!).sort()).toEqual(Object.keys(wanted).sort())
      expect((got!['error'] as JsonObject | null)?.['error_type'] === 'tool_not_found').toBe(
        (wanted['error'] as JsonObject | null)?.['error_type'] === 'tool_not_found',
      )
    }
  })

  test('frames that do not fit: kinds, codes and places', async () => {
    const client = await rawClient(base)
    const exchange = section('gym env: GenericEnvClient')
    let compared = 0
    for (const [index, { client: frame, client_raw: raw }] of exchange.entries()) {
      const answer = exchange[index + 1]?.server
      if (answer === undefined || Array.isArray(frame)) continue
      // The gym environment's own actions mean nothing to tools.
      const { type: kind } = (frame ?? {}) as JsonObject
      if (kind === 'mcp' || (kind === 'step' && (frame as JsonObject)['data'] !== undefined))
        continue
      expect(essence(await client.ask(raw ?? frame)), JSON.stringify(frame)).toEqual(
        essence(answer),
      )
      compared += 1
    }
    expect(compared).toBeGreaterThanOrEqual(8)
  })

  test('an action that does not fit: what is missing, what is too much', async () => {
    const client = await rawClient(base)
    const errors = async (data: JsonObject) =>
      essence(await client.ask({ type: 'step', data })).errors
    expect(await errors({ nope: 1 })).toEqual([
      { type: 'missing', loc: ['tool_name'] },
      { type: 'extra_forbidden', loc: ['nope'] },
    ])
    expect(await errors({ tool_name: 5 })).toEqual([{ type: 'string_type', loc: ['tool_name'] }])
  })

  test('a frame that is no object ends the connection', async () => {
    const client = await rawClient(base)
    expect(await client.ask([])).toMatchObject({ data: { code: 'SESSION_ERROR' } })
    expect(await client.closed).toBe(1005)
  })

  test('JSON-RPC over HTTP: results, codes and data', async () => {
    await serve({ limits: { sessions: 2 } })
    const ids = new Map<string, string>()
    for (const { http, body, answer } of [
      ...section('http routes (gym env)').filter(({ http: route }) => route === 'POST /mcp'),
      ...section('mcp env: http /mcp').filter(({ http: route }) => route === 'POST /mcp'),
    ]) {
      expect(http).toBe('POST /mcp')
      if (JSON.stringify(answer).includes('does not support MCP')) continue
      const sent = typeof body === 'string' ? body : JSON.stringify(body)
      const renamed = [...ids].reduce((text, [from, to]) => text.replaceAll(from, to), sent)
      // A session plays after a reset only; recorded without one.
      if (renamed.includes('"session_id"') && renamed.includes('tools/call')) continue
      const response = await fetch(`${base}/mcp`, { method: 'POST', body: renamed })
      expect(response.status).toBe(200)
      const given = (await response.json()) as JsonObject
      const [wantedError, error] = [answer!, given].map(
        (each) => each['error'] as JsonObject | undefined,
      )
      expect(error?.['code'], renamed).toBe(wantedError?.['code'])
      expect(error?.['data'], renamed).toEqual(wantedError?.['data'])
      expect(given['id']).toEqual(answer!['id'])
      const [wanted, got] = [answer!, given].map((each) => each['result'] as JsonObject | undefined)
      expect(Object.keys(got ?? {}), renamed).toEqual(Object.keys(wanted ?? {}))
      if (typeof wanted?.['session_id'] === 'string')
        ids.set(wanted['session_id'], got!['session_id'] as string)
    }
    expect(ids.size).toBe(2)
  })
})

describe('sessions', () => {
  test('a socket beyond the capacity gets the frame and is closed; a place is free as soon as a client left', async () => {
    await serve({ limits: { sessions: 2 } })
    const [first] = [await rawClient(base), await rawClient(base)]
    const third = await rawClient(base)
    expect(await third.next()).toEqual({
      type: 'error',
      data: {
        message: 'Server at capacity: 2/2 sessions active. Cannot accept new connections.',
        code: 'CAPACITY_REACHED',
        active_sessions: 2,
        max_sessions: 2,
      },
    })
    await third.closed
    first.send({ type: 'close' })
    await first.closed
    await vi.waitFor(() => expect(server.activeSessions).toBe(1), { timeout: 60_000 })
    const fourth = await rawClient(base)
    expect(await fourth.ask({ type: 'reset' })).toMatchObject({ type: 'observation' })
  })

  test('a session made over HTTP is shared with a socket, once; it outlives the socket until it is closed', async () => {
    const rpc = async (method: string, params: JsonObject) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      const response = await fetch(`${base}/mcp`, { method: 'POST', body })
      return (await response.json()) as JsonObject
    }
    const created = await rpc('openenv/session/create', {})
    const id = (created['result'] as JsonObject)['session_id'] as string
    const client = await rawClient(base, `/ws?session_id=${id}`)
    await client.ask({ type: 'reset', data: { seed: 4 } })
    const called = await rpc('tools/call', {
      session_id: id,
      name: 'add',
      arguments: { a: 4, b: 2 },
    })
    expect(called['result']).toMatchObject({ data: '6' })
    const failed = await rpc('tools/call', {
      session_id: id,
      name: 'fail',
      arguments: { why: 'z' },
    })
    expect(failed['error']).toEqual({ code: -32603, message: 'bad: z', data: null })
    const again = await rawClient(base, `/ws?session_id=${id}`)
    expect(await again.next()).toMatchObject({
      data: { message: `session ${id} already has an attached WebSocket` },
    })
    const stranger = await rawClient(base, '/ws?session_id=zz')
    expect(await stranger.next()).toMatchObject({ data: { message: 'Unknown session_id: zz' } })
    expect((await rpc('openenv/session/close', { session_id: id }))['result']).toEqual({
      session_id: id,
      closed: false,
      closing: true,
    })
    client.socket.close()
    await vi.waitFor(() => expect(server.activeSessions).toBe(0), { timeout: 60_000 })
    expect(await rpc('tools/list', { session_id: id })).toMatchObject({ error: { code: -32602 } })
  })

  test('sessions that no socket holds end after a while without a request', async () => {
    const clock = simulatedClock()
    await serve({ clock, limits: { idleMs: 1000, sessions: 1 } })
    const create = async () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'openenv/session/create' })
      return (await (
        await server.fetch(new Request(`${base}/mcp`, { method: 'POST', body }))
      ).json()) as JsonObject
    }
    expect(await create()).toHaveProperty('result')
    expect(await create()).toMatchObject({ error: { code: -32000 } })
    await clock.advance(1000)
    expect(await create()).toHaveProperty('result')
  })

  test('JSON-RPC on a socket has the socket’s own session', async () => {
    const client = await rawClient(base, '/mcp')
    const created = await client.ask({ jsonrpc: '2.0', id: 1, method: 'openenv/session/create' })
    expect(created).toMatchObject({ result: { session_id: expect.any(String) as string } })
    expect(await client.ask({ jsonrpc: '2.0', id: 2, method: 'tools/list' })).toMatchObject({
      result: { tools: [{ name: 'add' }, { name: 'fail' }, { name: 'end_turn' }] },
    })
    expect(await client.ask('{bad')).toMatchObject({ error: { code: -32700 } })
    expect(server.activeSessions).toBe(1)
  })

  test('an answer that takes too long is an error before the client gives up', async () => {
    const clock = simulatedClock()
    await serve({ clock })
    const client = await rawClient(base)
    await client.ask({ type: 'reset' })
    const answer = client.ask(callAdd(-1, 0))
    await vi.waitFor(() => expect(clock.sleeping).toBe(1), { timeout: 60_000 })
    await clock.advance(55_000)
    expect(await answer).toEqual({
      type: 'error',
      data: { message: 'gave up waiting for tool "add" after 55000 ms', code: 'EXECUTION_ERROR' },
    })
    await vi.waitFor(() => expect(source.ends).toMatchObject([{ kind: 'failed' }]), {
      timeout: 60_000,
    })
  })
})

describe('routes', () => {
  const get = async (path: string) => (await (await fetch(`${base}${path}`)).json()) as JsonObject
  const post = async (path: string, body: JsonValue) => {
    const response = await fetch(`${base}${path}`, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as JsonObject }
  }

  test('what a validator asks for is there', async () => {
    expect(await get('/health')).toEqual({ status: 'healthy' })
    expect(await get('/metadata')).toMatchObject({ name: 'sums', version: '1.0.0', author: null })
    expect(await get('/schema')).toMatchObject({
      action: { title: 'CallToolAction', properties: { tool_name: {}, arguments: {} } },
    })
    const { info, paths } = await get('/openapi.json')
    expect((info as JsonObject)['version']).toBe('1.0.0')
    expect(paths).toHaveProperty('/step')
    expect(await post('/mcp', {})).toMatchObject({ status: 200, body: { jsonrpc: '2.0' } })
  })

  test('routes without state have an environment each; production leaves them out', async () => {
    expect(await post('/reset', { seed: 1 })).toMatchObject({ status: 200, body: { done: false } })
    expect(
      await post('/step', { action: { tool_name: 'add', arguments: { a: 1, b: 2 } } }),
    ).toMatchObject({
      body: { observation: { result: { data: '3' } } },
    })
    expect(await post('/step', { action: {} })).toMatchObject({
      status: 422,
      body: { detail: [{ type: 'missing', loc: ['body', 'action', 'tool_name'] }] },
    })
    expect(await get('/state')).toMatchObject({ episode_id: null, step_count: 0 })
    expect(server.activeSessions).toBe(0)
    expect(source.ends).toHaveLength(source.opened - 1)
    await serve({ production: true })
    expect((await fetch(`${base}/state`)).status).toBe(404)
    expect((await get('/openapi.json'))['paths']).not.toHaveProperty('/step')
  })

  test('the task API lists splits and tasks as what reset takes', async () => {
    expect(await get('/list_environments')).toEqual(['sums'])
    expect(await get('/sums/splits')).toEqual([
      { name: 'all', type: 'validation' },
      { name: 'train', type: 'train' },
    ])
    expect((await post('/sums/tasks', { split: 'train' })).body).toEqual({
      tasks: [
        { task_id: 'one-turn', split: 'train', index: 0 },
        { task_id: 'two-turns', split: 'train', index: 1 },
      ],
      env_name: 'sums',
    })
    expect((await post('/sums/num_tasks', { split: 'all' })).body).toEqual({ num_tasks: 3 })
    expect((await post('/sums/task', { split: 'all', index: 2 })).body).toEqual({
      task: { task_id: 'third', split: 'all', index: 2 },
    })
    expect((await post('/sums/task', { split: 'all', index: 3 })).status).toBe(400)
    expect(
      (await post('/sums/task_range', { split: 'all', start: 1, stop: 2 })).body['tasks'],
    ).toHaveLength(1)
    expect((await post('/other/tasks', { split: 'all' })).status).toBe(404)
    expect((await post('/sums/tasks', { split: 'nope' })).status).toBe(404)
  })

  test('keys are asked of requests and sockets; health is open; pages of other origins get nothing', async () => {
    await serve({ keys: ['a-secret-key'] })
    expect((await fetch(`${base}/metadata`)).status).toBe(401)
    expect((await fetch(`${base}/health`)).status).toBe(200)
    const authorization = { authorization: 'Bearer a-secret-key' }
    expect((await fetch(`${base}/metadata`, { headers: authorization })).status).toBe(200)
    await expect(rawClient(base)).rejects.toThrow('401')
    const origin = { ...authorization, origin: 'http://elsewhere.example' }
    await expect(rawClient(base, '/ws', origin)).rejects.toThrow('403')
    await expect(rawClient(base, '/nope', authorization)).rejects.toThrow('404')
    const client = await rawClient(base, '/ws', authorization)
    expect(await client.ask({ type: 'state' })).toMatchObject({ type: 'state' })
  })
})

describe('a server that is set up wrongly', () => {
  test('an unknown option, a short key, an address for everybody', async () => {
    const wrong = { source: sumsSource(), reward: rightRule, limit: {}, keys: ['short'] }
    expect(() => openenvServer(wrong as never)).toThrow(
      /did you mean "limits"[^]*8 characters|8 characters[^]*did you mean "limits"/,
    )
    await expect(server.listen({ host: '0.0.0.0' })).rejects.toThrow('asks for no key')
  })

  test('a tool that has the name of a verb is refused by name', async () => {
    const named = sumsSource()
    const renamed = {
      ...named,
      open: async (...args: Parameters<typeof named.open>) => {
        const env = await named.open(...args)
        if (env.specVersion !== 'env/1') return env
        return {
          ...env,
          start: async () => ({
            messages: [],
            tools: [{ name: 'reset', parameters: { type: 'object' } }],
          }),
        }
      },
    }
    const other = openenvServer({ source: renamed, reward: rightRule })
    await expect(other.listen()).rejects.toThrow('tool "reset": OpenEnv has a verb of that name')
  })
})
