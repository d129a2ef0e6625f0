import { inspect } from 'node:util'

import { tokenChunk, tokenPrompt } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { tinkerBackend, tinkerClient } from '../src/index.ts'
import { fakeService, json, type Answer } from './fake-service.ts'

const KEY = 'tml-SENTINEL-key'
const JWT = `eyJhbGciOiJub25lIn0.${Buffer.from('{"exp":99999999999}').toString('base64url')}.SENTINEL-sig`
const PROMPT = 424_242

/** A service that repeats in every error what it was sent, as careless proxies do. */
const echo: Answer = ({ path, headers, bytes }) => {
  if (path === '/auth/token') return json({ jwt: JWT })
  if (path === '/client/config' || path === '/client/dynamic_config') return undefined
  const said = `refused ${headers.get('x-api-key')} for ${new TextDecoder().decode(bytes)}`
  return json({ detail: said }, 403, { 'x-request-id': `r-${headers.get('x-api-key')}` })
}

const failing: readonly (readonly [string, Answer])[] = [
  ['an error that repeats the key', echo],
  ['a service that is down', () => json({ detail: KEY }, 500)],
  ['a broken connection whose error repeats the key', () => Promise.reject(new Error(KEY))],
  ['a page of a proxy', () => new Response(`<html>${KEY}</html>`, { status: 502 })],
  ['an answer that is no JSON', () => new Response(KEY, { status: 200 })],
]

test.each(failing)(
  '#12 no key in errors, logs or what is printed of the client: %s',
  async (_, answer) => {
    const output: unknown[] = []
    const log = (...line: unknown[]) => void output.push(line)
    const clock = simulatedClock()
    const service = fakeService(answer, { pjwt_auth_enabled: answer === echo })
    const options = {
      baseUrl: 'http://x.test',
      apiKey: KEY,
      fetch: service.fetch,
      clock,
      logger: { debug: log, info: log, warn: log, error: log },
      deadlines: { retries: 2_000 },
    }
    const client = tinkerClient(options)
    const backend = tinkerBackend(options)
    const calls = [
      client.session(),
      client.rest.capabilities(),
      client.rest.weightsInfo('tinker://r/weights/n'),
      client.samplingSession({ baseModel: 'toy' }),
      client.createModel({ baseModel: 'toy', rank: 1 }),
      client.loadModel('tinker://r/weights/n'),
      backend.describe(),
      backend.checkpoints().list(),
      backend.sampler({ model: 'toy' }),
    ]
    const outcomes = await clock.drive(Promise.allSettled(calls))
    await clock.drive(Promise.all([client.close(), backend.close()]))
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
    const all = [...output, ...outcomes, client, backend]
    expect(inspect(all, { depth: 12, showHidden: true, maxStringLength: null })).not.toContain(
      'SENTINEL',
    )
    expect(JSON.stringify(outcomes, Object.getOwnPropertyNames(Error.prototype))).not.toContain(
      'SENTINEL',
    )
  },
)

test.each(['https://me:tml-SENTINEL@x.test', 'https://x.test/api?token=tml-SENTINEL'])(
  'F64: an address with a secret in it is refused, and not shown: %#',
  (baseUrl) => {
    const open = () => tinkerBackend({ baseUrl, apiKey: 'k' })
    expect(open).toThrow('baseUrl: an address without user, query or fragment')
    expect(open).not.toThrow('SENTINEL')
  },
)

test('logs and errors hold no tokens of prompts or data', async () => {
  const output: unknown[] = []
  const log = (...line: unknown[]) => void output.push(line)
  const service = fakeService(({ path }) => {
    if (path === '/create_sampling_session') return json({ sampling_session_id: 'x' })
    if (path === '/create_model' || path === '/asample') return json({ request_id: 'r' })
    if (path === '/retrieve_future') return json({ model_id: 'm', error: undefined })
    return undefined
  })
  const backend = tinkerBackend({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    logger: { debug: log, info: log, warn: log, error: log },
  })
  const sampler = await backend.sampler({ model: 'toy' })
  const learner = await backend.learner({ model: 'toy', adaptation: { rank: 1 } })
  const outcomes = await Promise.allSettled([
    sampler.sample({ prompt: tokenPrompt([PROMPT]), maxTokens: 2 }),
    learner.forward(
      [
        {
          input: [tokenChunk([PROMPT])],
          targets: Int32Array.of(PROMPT),
          weights: Float32Array.of(1),
        },
      ],
      { name: 'cross_entropy' },
    ),
  ])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(inspect([output, outcomes], { depth: 12 })).not.toContain(String(PROMPT))
})
