import { expect, test } from 'vitest'

import { createGateway, serveGateway, type Attempt, type Gateway } from '../src/index.ts'
import { deferred } from '../src/waiting.ts'
import { byteRenderer } from './support/byte-renderer.ts'
import { bench, postTo, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

const said = { messages: [user('go')] }

async function errorOf(
  response: Response,
): Promise<{ readonly status: number; readonly code: string }> {
  const { error } = (await response.json()) as { error: { code: string } }
  return { status: response.status, code: error.code }
}

function open(gateway: Gateway, rollout: string, answer = 'x'): Attempt {
  const policy = { sampler: byteSampler([answer]), renderer: byteRenderer(), sampling: {} }
  return gateway.open({ rollout, policy })
}

test('§18.1 a key alone decides the attempt', async () => {
  const { gateway, attempt } = bench(['x'])
  const response = await postTo(gateway, `${gateway.origin}/v1/chat/completions`, attempt.key, said)
  expect(response.status).toBe(200)
  expect(attempt.calls).toHaveLength(1)
})

test('§18.2 a path of another attempt than the key’s is refused and leaves no trace', async () => {
  const gateway = createGateway()
  const [one, two] = [open(gateway, 'one'), open(gateway, 'two')]
  const response = await postTo(gateway, `${gateway.baseURL(two)}/chat/completions`, one.key, said)
  expect(await errorOf(response)).toEqual({ status: 403, code: 'attribution_mismatch' })
  expect([one.calls, two.calls]).toEqual([[], []])
})

test('§18.3 without a key nothing is sampled, unless keys are not required and the path is valid; a wrong key is wrong even then', async () => {
  const strict = createGateway()
  const attempt = open(strict, 'r')
  const url = `${strict.baseURL(attempt)}/chat/completions`
  expect(await errorOf(await postTo(strict, url, undefined, said))).toMatchObject({ status: 401 })
  const loose = createGateway({ requireKey: false })
  const named = open(loose, 'r')
  const place = `${loose.baseURL(named)}/chat/completions`
  expect((await postTo(loose, place, undefined, said)).status).toBe(200)
  expect((await postTo(loose, place, 'wrong', said)).status).toBe(401)
  expect((await postTo(loose, `${loose.origin}/v1/chat/completions`, undefined, said)).status).toBe(
    401,
  )
})

test('§18.4 §18.96 F64 F65 keys are 256 random bits, and no log line, record or error has one, nor a word of what was said', async () => {
  const lines: string[] = []
  const log = (message: string, fields?: object) =>
    void lines.push(message + JSON.stringify(fields))
  const logger = { debug: log, info: log, warn: log, error: log }
  const { attempt, post, chat, record, gateway } = bench(['secret answer'], { gateway: { logger } })
  const other = open(gateway, 'other')
  expect(new Set([attempt.key, other.key]).size).toBe(2)
  expect(attempt.key).toMatch(/^ty-[\w-]{43}$/)
  await chat([user('secret question')])
  const answers = [
    await post('/chat/completions', { messages: [user('secret')], temperature: 'secret' }),
    await post('/nowhere', { secret: 1 }),
    await post('/rollout/reward', { value: 1, name: 'none' }),
  ]
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  const everything = [...lines, ...texts, JSON.stringify(attempt.calls)].join()
  expect(everything).not.toContain(attempt.key)
  expect(everything).not.toContain('secret')
  expect(JSON.stringify(record.replies)).not.toContain(attempt.key)
  expect(lines.length).toBeGreaterThan(0)
})

test('§18.5 F54 the key of an ended attempt is refused for good, and ending twice is harmless', async () => {
  const { attempt, post } = bench(['x'])
  await attempt.close()
  await attempt.close()
  const response = await post('/chat/completions', said)
  expect(response.headers.get('x-should-retry')).toBe('false')
  expect(await errorOf(response)).toEqual({ status: 403, code: 'rollout_closed' })
})

test('§18.6 F54 sixteen attempts at once with the same messages share nothing', async () => {
  const gateway = createGateway()
  const attempts = Array.from({ length: 16 }, (_, index) =>
    open(gateway, `r${index}`, `word ${index}`),
  )
  const replies = await Promise.all(
    attempts.map(async (attempt) => {
      const response = await postTo(
        gateway,
        `${gateway.baseURL(attempt)}/chat/completions`,
        attempt.key,
        said,
      )
      return ((await response.json()) as { choices: [{ message: { content: string } }] }).choices[0]
        .message.content
    }),
  )
  expect(replies).toEqual(attempts.map((_, index) => `word ${index}`))
  expect(
    attempts.every(({ calls }) => calls.length === 1 && calls[0]!.samples[0]!.fork === undefined),
  ).toBe(true)
})

test('§18.7 the agent’s name comes from the header, else the path, else the model’s suffix', async () => {
  const { gateway, attempt } = bench(['x'])
  const ask = (agent: string | undefined, model: string, headers: Record<string, string>) =>
    postTo(
      gateway,
      `${gateway.baseURL(attempt, agent)}/chat/completions`,
      attempt.key,
      { ...said, model },
      { headers },
    )
  await ask('path', 'policy#suffix', {
    'x-tiltyard-agent': 'header',
    'x-tiltyard-purpose': 'title',
  })
  await ask('path', 'policy#suffix', {})
  await ask(undefined, 'policy#suffix', {})
  await ask(undefined, 'policy', {})
  expect(attempt.calls.map(({ agent }) => agent)).toEqual(['header', 'path', 'suffix', undefined])
  expect(attempt.calls[0]!.purpose).toBe('title')
})

test('§18.8 base URLs work with /v1, without it, doubled, and with a slash at the end', async () => {
  const { gateway, attempt } = bench(['x'])
  const base = gateway.baseURL(attempt).replace(/\/v1$/, '')
  for (const url of [
    `${base}/v1/chat/completions`,
    `${base}/chat/completions`,
    `${base}/v1/v1/chat/completions`,
    `${base}/v1/chat/completions/`,
    `${base}/v1//chat/completions`,
    `${base}//chat/completions`,
  ])
    expect((await postTo(gateway, url, attempt.key, said)).status).toBe(200)
})

test('§18.9 F57 an address that others reach is refused when no key is asked for', async () => {
  await expect(
    serveGateway(createGateway({ requireKey: false }), { host: '0.0.0.0' }),
  ).rejects.toThrow(/requireKey/)
  await expect(serveGateway(createGateway({ serving: {} }), { host: '::' })).rejects.toThrow(
    /serving.key/,
  )
})

test('F57 the address is loopback unless another is named', async () => {
  const gateway = createGateway()
  const server = await serveGateway(gateway)
  expect(gateway.origin).toBe(`http://127.0.0.1:${server.port}`)
  const health = await fetch(`${gateway.origin}/healthz`)
  expect(await health.json()).toEqual({ status: 'ok' })
  await server.close()
})

test('§18.99 two gateways in one process do not know each other’s keys', async () => {
  const [one, two] = [createGateway(), createGateway()]
  const attempt = open(one, 'r')
  const response = await postTo(two, `${two.origin}/v1/chat/completions`, attempt.key, said)
  expect(await errorOf(response)).toEqual({ status: 401, code: 'invalid_api_key' })
})

test('§18.58 §18.104 an attempt with too many calls under way gets 429 with a time to wait, and others are not slowed', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['x'], { before: () => held.promise })
  const { post, gateway } = bench([], { sampler, gateway: { maxConcurrentCalls: 2 } })
  const running = [1, 2].map((index) => post('/chat/completions', { messages: [user(`${index}`)] }))
  await Promise.resolve()
  while (sampler.seen.length < 2) await new Promise(setImmediate)
  const refused = await post('/chat/completions', said)
  expect(refused.status).toBe(429)
  const wait = Number(refused.headers.get('retry-after'))
  expect(wait).toBeGreaterThanOrEqual(1)
  expect(wait).toBeLessThanOrEqual(30)
  const other = open(gateway, 'other')
  const free = await postTo(gateway, `${gateway.baseURL(other)}/chat/completions`, other.key, said)
  expect(free.status).toBe(200)
  held.resolve()
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200])
})

test('§18.38 an unknown route is told with those that there are', async () => {
  const gateway = createGateway()
  const attempt = open(gateway, 'r')
  for (const route of ['/embeddings', '/chat', '/']) {
    const response = await postTo(gateway, gateway.baseURL(attempt) + route, attempt.key, said)
    expect(response.status).toBe(404)
    const { error } = (await response.json()) as { error: { message: string } }
    expect(error.message).toContain('POST /v1/chat/completions')
    expect(error.message).toContain('POST /v1/rollout/reward')
  }
})

test('§18.86 a rollout’s attempt exists once: another of its name is refused while it is open', async () => {
  const gateway = createGateway()
  const first = open(gateway, 'r')
  expect(() => open(gateway, 'r')).toThrow('attempt 0 of rollout "r" is open')
  expect(gateway.counts.open).toBe(1)
  await first.close()
  expect(open(gateway, 'r').key).not.toBe(first.key)
})
