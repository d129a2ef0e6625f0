import type { JsonObject, JsonValue } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { rawClient } from './support/client.ts'
import { base, serve, serveEachTest, server, source } from './support/served.ts'

serveEachTest()

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
