import type { JsonObject, JsonValue } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test, vi } from 'vitest'

import { openenvServer } from '../src/index.ts'
import { rawClient } from './support/client.ts'
import { base, callAdd, serve, serveEachTest, server, source } from './support/served.ts'
import { rightRule, sumsSource } from './support/sums.ts'

serveEachTest()

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
