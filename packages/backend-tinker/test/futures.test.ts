import { tokenPrompt } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { tinkerClient, type TinkerOptions } from '../src/index.ts'
import { fakeService, json, protobuf, silence, type Answer } from './fake-service.ts'

const slow: Answer = async () => json(tryAgain(), 408)

const busy = () => json({}, 429)

const broken = () => Promise.reject(new TypeError('reset'))

const sampled = () => protobuf('0a14120805000000060000001a08000000bf000080be')
const tryAgain = (state?: string, reason?: string) => ({
  type: 'try_again',
  request_id: 'r',
  queue_state: state ?? 'active',
  ...(reason !== undefined && { queue_state_reason: reason }),
})

/** Samples once; `polls` answer the requests for the result in order, the last again and again. */
async function sample(polls: readonly Answer[], options: Partial<TinkerOptions> = {}) {
  const clock = simulatedClock()
  const lines: string[] = []
  const log = (text: string) => {
    lines.push(text)
  }
  let count = 0
  let begun = 0
  const times: number[] = []
  const service = fakeService((asked) => {
    if (asked.path === '/create_sampling_session')
      return json({ sampling_session_id: 's:sample:0' })
    if (asked.path === '/asample') {
      begun = clock.now()
      return json({ request_id: `r${service.at('/asample').length}` })
    }
    if (asked.path !== '/retrieve_future') return undefined
    times.push(clock.now() - begun)
    count += 1
    return polls[Math.min(count, polls.length) - 1]!(asked)
  })
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    clock,
    logger: { debug: log, info: log, warn: log, error: log },
    ...options,
  })
  const session = await client.samplingSession({ baseModel: 'toy' })
  const work = clock.drive(session.sample(tokenPrompt([1, 2]), { numSamples: 1, maxTokens: 2 }))
  const outcome = await work.then(
    (answer) => ({ ids: answer.samples.map(({ ids }) => [...ids]) }),
    (error: unknown) => ({ error }),
  )
  return { outcome, service, times, lines }
}

const ids = { ids: [[5, 6]] }

// One case per row of tinker-protocol.md §5.3.
describe('#27 an answer to the question for a result', () => {
  test('protobuf is the result', async () => {
    const { outcome, service } = await sample([sampled])
    expect(outcome).toEqual(ids)
    const [poll] = service.at('/retrieve_future')
    expect(poll!.json).toEqual({ request_id: 'r1', allow_metadata_only: true })
    expect(poll!.headers.get('accept')).toContain('application/x-protobuf')
  })

  test('JSON of older services is the result', async () => {
    const old = { sequences: [{ tokens: [5, 6], logprobs: [-1, -1], stop_reason: 'stop' }] }
    expect((await sample([() => json(old)])).outcome).toEqual(ids)
  })

  test('#28 try-again, as 200 or 408, is asked again at once, any number of times', async () => {
    const answers = Array.from(
      { length: 20 },
      (_, index) => () => json(tryAgain(), index % 2 === 0 ? 200 : 408),
    )
    const { outcome, times } = await sample([...answers, sampled])
    expect(outcome).toEqual(ids)
    expect(times).toHaveLength(21)
    expect(times.at(-1)).toBe(0)
  })

  test('a pause is said with its reason, and its end', async () => {
    const { lines } = await sample([
      () => json(tryAgain('paused_capacity', 'GPU busy'), 408),
      () => json(tryAgain('paused_capacity', 'GPU busy'), 408),
      sampled,
    ])
    expect(lines).toEqual(['paused: sample; GPU busy', 'going on: sample'])
  })

  test('#29 metadata alone is followed by the question without it', async () => {
    const { outcome, service } = await sample([
      () => json({ status: 'complete_metadata', response_payload_size: 9 }),
      sampled,
    ])
    expect(outcome).toEqual(ids)
    const asked = service.at('/retrieve_future').map((one) => one.json['allow_metadata_only'])
    expect(asked).toEqual([true, false])
  })

  test.each([
    ['user', 'TINKER_REFUSED'],
    ['server', 'TINKER_FAILED'],
    ['cosmic', 'TINKER_FAILED'],
  ])('a failure of category %s rejects as %s', async (category, code) => {
    const { outcome } = await sample([() => json({ error: 'too long', category })])
    const known = category === 'cosmic' ? 'unknown' : category
    expect(outcome).toMatchObject({ error: { code, category: known, requestId: 'r1' } })
  })

  test.each([400, 409])(
    '%i, which a proxy may have made up, is asked three more times',
    async (status) => {
      const { outcome, times } = await sample([() => json({ detail: 'bad' }, status)])
      expect(outcome).toMatchObject({ error: { code: 'TINKER_REFUSED', status } })
      expect(times).toEqual([0, 0, 0, 0])
    },
  )

  test.each([401, 403, 422])('%i is an error at once', async (status) => {
    const { outcome, times } = await sample([() => json({ detail: 'no' }, status)])
    expect(outcome).toMatchObject({ error: { status } })
    expect(times).toHaveLength(1)
  })

  test('404 tells that the session may be over, and to go on from a checkpoint', async () => {
    const { outcome } = await sample([() => json({ detail: 'gone' }, 404)])
    expect(outcome).toMatchObject({ error: { code: 'TINKER_SESSION' } })
    expect((outcome as { error: Error }).error.message).toContain('last checkpoint')
  })

  test('402 waits five seconds at a time, within the billing deadline', async () => {
    const { outcome, times } = await sample([() => json({}, 402), () => json({}, 402), sampled], {
      deadlines: { billing: 60_000 },
    })
    expect(outcome).toEqual(ids)
    expect(times).toEqual([0, 5_000, 10_000])
  })

  test('#65 410 samples anew, under a new number', async () => {
    const { outcome, service } = await sample([() => json({ detail: 'lost' }, 410), sampled])
    expect(outcome).toEqual(ids)
    expect(service.at('/asample').map((one) => one.json['seq_id'])).toEqual([0, 1])
  })

  test('429 and a broken connection wait one second, then two, then four', async () => {
    const { outcome, times } = await sample([
      () => json({}, 429),
      broken,
      () => json({}, 429),
      sampled,
    ])
    expect(outcome).toEqual(ids)
    expect(times).toEqual([0, 1_000, 3_000, 7_000])
  })

  test('any other answer sets the wait back', async () => {
    const { times } = await sample([busy, busy, () => json(tryAgain(), 408), busy, sampled])
    expect(times).toEqual([0, 1_000, 3_000, 3_000, 4_000])
  })

  test('5xx is asked again at once, then with pauses, and not for ever', async () => {
    const { outcome, times } = await sample([() => json({}, 503)], {
      deadlines: { retries: 20_000 },
    })
    expect(outcome).toMatchObject({ error: { code: 'TINKER_UNREACHABLE', status: 503 } })
    expect(times[1]).toBe(0)
    expect(times[2]).toBeGreaterThan(0)
    expect(times.at(-1)).toBeLessThan(32_000)
  })

  test('F47: a service that never answers is given up when the sample’s time is over', async () => {
    const { outcome } = await sample([silence], { deadlines: { sample: 120_000 } })
    expect(outcome).toMatchObject({ error: { code: 'DEADLINE' } })
  })

  test('F47: a service that says try-again for ever is given up too', async () => {
    let left = 10_000
    const { outcome } = await sample(
      [(asked) => ((left -= 1) > 0 ? slow(asked) : silence(asked))],
      { deadlines: { sample: 120_000 } },
    )
    expect(outcome).toMatchObject({ error: { code: 'DEADLINE' } })
  })
})

test('F48: a 429 to a sample request that means an empty account is an error at once', async () => {
  const service = fakeService(({ path }) => {
    if (path === '/create_sampling_session') return json({ sampling_session_id: 's:sample:0' })
    return path === '/asample' ? json({ detail: 'no credits left' }, 429) : undefined
  })
  const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
  const session = await client.samplingSession({ baseModel: 'toy' })
  await expect(
    session.sample(tokenPrompt([1]), { numSamples: 1, maxTokens: 1 }),
  ).rejects.toMatchObject({ code: 'TINKER_BILLING', status: 429 })
  expect(service.at('/asample')).toHaveLength(1)
  await client.close()
})

test('#64 429 to a sample request is no error: the same request after a pause', async () => {
  const clock = simulatedClock()
  const at: number[] = []
  const service = fakeService((asked) => {
    if (asked.path === '/create_sampling_session') return json({ sampling_session_id: 'x' })
    if (asked.path === '/retrieve_future') return sampled()
    if (asked.path !== '/asample') return undefined
    at.push(clock.now())
    return at.length < 4 ? json({ detail: 'busy' }, 429) : json({ request_id: 'r' })
  })
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    clock,
  })
  const session = await client.samplingSession({ baseModel: 'toy' })
  await clock.drive(session.sample(tokenPrompt([1]), { numSamples: 1, maxTokens: 2 }))
  expect(at).toEqual([0, 1_000, 2_000, 3_000])
  const asked = service.at('/asample')
  expect(asked.map((one) => one.json['seq_id'])).toEqual([0, 0, 0, 0])
  expect(asked[0]!.headers.get('x-tinker-sampling-backpressure')).toBe('1')
})

test('F74: limits.sending bounds the sample requests that are on their way', async () => {
  const waiting: (() => void)[] = []
  const service = fakeService(({ path, json: body }) => {
    if (path === '/create_sampling_session') return json({ sampling_session_id: 'x' })
    if (path === '/retrieve_future') return sampled()
    if (path !== '/asample') return undefined
    return new Promise((resolve) => {
      waiting.push(() => resolve(json({ request_id: String(body['seq_id']) })))
    })
  })
  const limits = { sending: 2 }
  const client = tinkerClient({
    baseUrl: 'http://x.test',
    apiKey: 'k',
    fetch: service.fetch,
    limits,
  })
  const session = await client.samplingSession({ baseModel: 'toy' })
  const samples = Array.from({ length: 5 }, () =>
    session.sample(tokenPrompt([1]), { numSamples: 1, maxTokens: 2 }),
  )
  for (const sent of [2, 4, 5]) {
    await expect.poll(() => service.at('/asample').length).toBe(sent)
    await new Promise(setImmediate)
    expect(service.at('/asample')).toHaveLength(sent)
    for (const answer of waiting.splice(0)) answer()
  }
  expect(await Promise.all(samples)).toHaveLength(5)
  await client.close()
})

test('an abandoned sample is called off, where the service can', async () => {
  const service = fakeService((asked) => {
    if (asked.path === '/client/dynamic_config') return json({ sample_cancel_enabled: true })
    if (asked.path === '/create_sampling_session') return json({ sampling_session_id: 'x' })
    if (asked.path === '/asample') return json({ request_id: 'r9' })
    if (asked.path === '/retrieve_future') return silence(asked)
    if (asked.path === '/cancel_future') return new Response(null, { status: 204 })
    return undefined
  })
  const client = tinkerClient({ baseUrl: 'http://x.test', apiKey: 'k', fetch: service.fetch })
  const session = await client.samplingSession({ baseModel: 'toy' })
  const stopped = new AbortController()
  const reason = new Error('enough')
  const work = session.sample(
    tokenPrompt([1]),
    { numSamples: 1, maxTokens: 2 },
    { signal: stopped.signal },
  )
  await expect.poll(() => service.at('/retrieve_future').length).toBe(1)
  stopped.abort(reason)
  await expect(work).rejects.toBe(reason)
  await expect
    .poll(() => service.at('/cancel_future').map((one) => one.json))
    .toEqual([{ request_id: 'r9' }])
  await client.close()
})
