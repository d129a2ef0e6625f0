import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { deferred } from '../src/waiting.ts'
import { reply, text } from './support/byte-renderer.ts'
import { bench, events, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'
import { settle } from './support/settle.ts'

const marked = { headers: { 'x-stainless-retry-count': '1' } }
const ask = { messages: [user('go')] }
const streamed = { ...ask, stream: true }

test('§18.16 F52 a stream that fails in the middle ends with an error and no [DONE], and leaves no reply', async () => {
  const sampler = byteSampler(['hello'], {
    between: async () => {
      if (sampler.seen.length > 0 && count++ > 2) throw new Error('the machine is gone')
    },
  })
  let count = 0
  const { post, record, attempt } = bench([], { sampler })
  const response = await post('/chat/completions', streamed)
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let seen = ''
  const readAll = async () => {
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      seen += decoder.decode(value, { stream: true })
    }
  }
  await expect(readAll()).rejects.toThrow('the sampler failed')
  expect(seen).toContain('"error":{"message":"the sampler failed"')
  expect(seen).not.toContain('[DONE]')
  expect(seen).not.toContain('machine')
  expect(record.replies).toEqual([])
  expect(attempt.calls[0]!.status).toBe('failed')
})

test('§18.17 a reply that takes 400 s keeps its connection alive, streamed or not', async () => {
  const clock = simulatedClock()
  const sampler = byteSampler(['late'], { before: () => clock.sleep(400_000) })
  const { post } = bench([], { sampler, gateway: { clock } })
  const plain = clock.drive(post('/chat/completions', ask).then((response) => response.text()))
  const body = await plain
  expect(body).toMatch(/^ {10,}\{"id"/)
  expect(JSON.parse(body)).toMatchObject({ choices: [{ message: { content: 'late' } }] })
  const stream = clock.drive(
    post('/chat/completions', { messages: [user('b')], stream: true }).then((response) =>
      response.text(),
    ),
  )
  const lines = await stream
  expect(lines.match(/^: keepalive$/gm)!.length).toBeGreaterThanOrEqual(39)
  expect(lines).toContain('[DONE]')
})

test('§18.48 a marked retry of a request whose connection broke gets the same sample, and says so', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['one', 'two'], { before: () => held.promise })
  const { post, attempt, record } = bench([], { sampler })
  const gone = new AbortController()
  const first = post('/chat/completions', ask, { signal: gone.signal })
  await settle()
  gone.abort()
  await expect(first).rejects.toThrow('aborted')
  const second = post('/chat/completions', ask, marked)
  await settle()
  held.resolve()
  const response = await second
  expect(response.headers.get('x-tiltyard-replayed')).toBe('1')
  expect(sampler.seen).toHaveLength(1)
  expect(record.replies).toHaveLength(1)
  expect(attempt.calls).toMatchObject([{ replayed: 1, delivered: true }])
})

test('§18.49 an unmarked retry after a broken connection gets the same sample', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['one', 'two'], { before: () => held.promise })
  const { post, record } = bench([], { sampler })
  const gone = new AbortController()
  const first = post('/chat/completions', streamed, { signal: gone.signal })
  const response = await first
  gone.abort()
  await expect(response.text()).rejects.toThrow('aborted')
  const second = post('/chat/completions', streamed)
  held.resolve()
  expect(JSON.stringify(await events(await second))).toContain('"o"')
  expect(sampler.seen).toHaveLength(1)
  expect(record.replies.map(({ trained }) => trained)).toEqual([true])
})

test('§18.50 equal requests of clients that all wait are samples of their own', async () => {
  const { post, sampler, record } = bench(['one', 'two'])
  const answers = await Promise.all([
    post('/chat/completions', ask),
    post('/chat/completions', ask),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
  expect(sampler.seen).toHaveLength(2)
  expect(record.replies.map(({ sample }) => text(sample.ids)).toSorted()).toEqual(['one', 'two'])
})

test('§18.51 best of n in parallel with one marked retry stays n samples', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['1', '2', '3', '4'], { before: () => held.promise })
  const { post } = bench([], { sampler })
  const gone = new AbortController()
  const lost = post('/chat/completions', ask, { signal: gone.signal })
  const others = [post('/chat/completions', ask), post('/chat/completions', ask)]
  await settle()
  gone.abort()
  await expect(lost).rejects.toThrow('aborted')
  const again = post('/chat/completions', ask, marked)
  await settle()
  held.resolve()
  const said = await Promise.all(
    [...others, again].map(async (it) => ((await (await it).json()) as { id: string }).id),
  )
  expect(new Set(said).size).toBe(3)
  expect(sampler.seen).toHaveLength(3)
})

test('§18.52 a client that leaves and never comes back: sampling stops after the grace, and nothing is trained', async () => {
  const clock = simulatedClock()
  const sampler = byteSampler(['long'], {
    before: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal!.addEventListener('abort', () => reject(signal!.reason as Error))
      }),
  })
  const { post, attempt, record, gateway } = bench([], { sampler, gateway: { clock } })
  const gone = new AbortController()
  const response = await post('/chat/completions', streamed, { signal: gone.signal })
  gone.abort()
  await expect(response.text()).rejects.toThrow('aborted')
  await clock.advance(29_000)
  expect(attempt.calls[0]!.status).toBe('running')
  await clock.advance(2_000)
  await settle()
  expect(attempt.calls[0]).toMatchObject({ status: 'cancelled', delivered: false })
  expect(record.replies).toEqual([])
  expect(gateway.counts.inFlight).toBe(0)
})

test('§18.52 a reply that was whole before its client was found to be gone is recorded as context only', async () => {
  const clock = simulatedClock()
  const held = deferred<void>()
  const sampler = byteSampler(['whole'], { before: () => held.promise })
  const { post, attempt, record } = bench([], { sampler, gateway: { clock } })
  const gone = new AbortController()
  const response = post('/chat/completions', ask, { signal: gone.signal })
  await settle()
  gone.abort()
  await expect(response).rejects.toThrow('aborted')
  held.resolve()
  await settle()
  expect(record.replies).toEqual([])
  await clock.advance(31_000)
  await settle()
  expect(record.replies.map(({ trained }) => trained)).toEqual([false])
  expect(attempt.calls[0]!.samples[0]!.untrained).toBe('undelivered')
})

test('§18.53 a client that leaves after the finish chunk has got all', async () => {
  const { post, attempt } = bench(['hi'])
  const response = await post('/chat/completions', streamed)
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  for (let seen = ''; !seen.includes('"finish_reason":"stop"');)
    seen += decoder.decode((await reader.read()).value, { stream: true })
  await reader.cancel()
  expect(attempt.calls[0]!.delivered).toBe(true)
})

test('§18.56 nothing is written for a slow reader before it reads, and others go on', async () => {
  const { post, attempt } = bench(['a'.repeat(500)])
  const slow = await post('/chat/completions', streamed)
  const fast = await post('/chat/completions', { messages: [user('other')], stream: true })
  const all = await fast.text()
  expect(all).toContain('[DONE]')
  expect(attempt.calls.map(({ status }) => status)).toEqual(['ok', 'ok'])
  expect(attempt.calls[0]!.delivered).toBe(false)
  expect(await slow.text()).toContain('[DONE]')
  expect(attempt.calls[0]!.delivered).toBe(true)
})

test('§18.57 a sampler that fails is asked again; then 502, which leaves no reply, and a retry samples once', async () => {
  const clock = simulatedClock()
  let failures = 0
  const sampler = byteSampler(['fine'], {
    before: async () => {
      if (failures++ < 4) throw new Error('overheated')
    },
  })
  const { post, record } = bench([], { sampler, gateway: { clock, samplerRetries: 2 } })
  const first = await clock.drive(post('/chat/completions', ask))
  expect(first.status).toBe(502)
  expect(first.headers.get('x-should-retry')).toBe('true')
  expect(record.replies).toEqual([])
  const second = await clock.drive(post('/chat/completions', ask, marked))
  expect(second.status).toBe(200)
  expect(record.replies).toHaveLength(1)
})

test('§18.93 a pause holds new calls; the drained gateway has none under way; too long a pause is 503', async () => {
  const clock = simulatedClock()
  const { post, gateway, sampler } = bench(['x'], { gateway: { clock } })
  gateway.pause()
  await gateway.drained()
  const waiting = post('/chat/completions', ask)
  await clock.advance(20_000)
  expect(sampler.seen).toEqual([])
  gateway.resume()
  expect((await waiting).status).toBe(200)
  gateway.pause()
  const late = post('/chat/completions', ask)
  await clock.advance(61_000)
  const refused = await late
  expect(refused.status).toBe(503)
  expect(refused.headers.get('retry-after')).toBe('5')
  await gateway.close()
  expect((await post('/chat/completions', ask)).status).toBe(403)
})

test('§18.93 a drained gateway has none under way: it waits for those that there are', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['x'], { before: () => held.promise })
  const { post, gateway } = bench([], { sampler })
  const running = post('/chat/completions', ask)
  await settle()
  gateway.pause()
  let drained = false
  const draining = gateway.drained().then(() => void (drained = true))
  await settle()
  expect(drained).toBe(false)
  held.resolve()
  await draining
  expect(gateway.counts.inFlight).toBe(0)
  expect((await running).status).toBe(200)
})

test('a client that leaves during a pause begins no call', async () => {
  const { post, gateway, sampler, attempt } = bench(['x', 'y'])
  gateway.pause()
  const leaving = new AbortController()
  const left = post('/chat/completions', ask, { signal: leaving.signal })
  await settle()
  leaving.abort(new Error('it had enough'))
  await expect(left).rejects.toThrow('it had enough')
  gateway.resume()
  expect((await post('/chat/completions', ask)).status).toBe(200)
  expect(sampler.seen).toHaveLength(1)
  expect(attempt.calls).toHaveLength(1)
  expect(gateway.counts.inFlight).toBe(0)
})

test('an idempotency key says that it is the same request, whatever its body', async () => {
  const { post, sampler } = bench(['one', 'two'])
  const keyed = { headers: { 'idempotency-key': 'k1' } }
  const [first, second] = [
    await (await post('/chat/completions', ask, keyed)).text(),
    await (await post('/chat/completions', { messages: [user('other')] }, keyed)).text(),
  ]
  expect(second).toBe(first)
  expect(sampler.seen).toHaveLength(1)
})

test('the ids of a streamed reply are those of its sample', async () => {
  const { post, record } = bench(['well ⟦a {}⟧'])
  await (await post('/chat/completions', streamed)).text()
  expect([...record.replies[0]!.sample.ids]).toEqual(reply('well ⟦a {}⟧'))
})
