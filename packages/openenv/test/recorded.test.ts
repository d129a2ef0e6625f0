import { readFileSync } from 'node:fs'

import type { JsonObject, JsonValue } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { rawClient } from './support/client.ts'
import { base, serve, serveEachTest } from './support/served.ts'

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

serveEachTest()

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
