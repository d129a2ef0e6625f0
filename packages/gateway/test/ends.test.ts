import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { createGateway } from '../src/index.ts'
import { deferred } from '../src/waiting.ts'
import { ask, sourceOf } from './support/agent.ts'
import { bench, user } from './support/harness.ts'
import { playFirst } from './support/play.ts'
import { byteSampler } from './support/sampler.ts'

test('what an agent says of its end a second time changes nothing', async () => {
  const { post, attempt } = bench(['x'])
  await post('/rollout/end', { output: 'first' })
  expect((await post('/rollout/end', { status: 'failed', error: 'second' })).status).toBe(200)
  const first = { status: 'completed', output: 'first' }
  expect(attempt.said).toEqual(first)
  expect(await attempt.finished).toEqual(first)
})

test('an agent that says that it is done ends its calls under way, and they leave no reply', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['late'], { before: () => held.promise })
  const { chat, post, attempt, record } = bench([], { sampler })
  const running = chat([user('go')])
  await expect.poll(() => sampler.seen.length).toBe(1)
  await post('/rollout/end', {})
  expect((await running).error?.code).toBe('rollout_closed')
  expect(attempt.calls.map(({ status }) => status)).toEqual(['cancelled'])
  held.resolve()
  await attempt.close()
  expect(record.log).toEqual([])
})

test('§18.88 a call, from its begin to its end, a reward and a heartbeat are signs of life; what is refused is none', async () => {
  const clock = simulatedClock()
  const sampler = byteSampler(['x'], { before: () => clock.sleep(5) })
  const { chat, post, attempt } = bench([], { sampler, gateway: { clock } })
  const asked = chat([user('go')])
  await expect.poll(() => sampler.seen.length).toBe(1)
  await clock.advance(3)
  expect(attempt.lastSeen).toBe(3)
  await clock.advance(2)
  await asked
  await clock.advance(5)
  expect(attempt.lastSeen).toBe(5)
  await post('/rollout/heartbeat', {})
  expect(attempt.lastSeen).toBe(10)
  await clock.advance(10)
  await post('/rollout/reward', { value: 1 })
  expect(attempt.lastSeen).toBe(20)
  await clock.advance(10)
  await chat([])
  expect(attempt.lastSeen).toBe(20)
})

test('an agent that gives up is to blame again once a call after a failed one was answered', async () => {
  let samples = 0
  const sampler = byteSampler(['x'], {
    before: async () => {
      samples += 1
      if (samples === 1) throw new Error('down')
    },
  })
  const source = sourceOf(createGateway({ samplerRetries: 0 }), async (_, context) => {
    expect((await ask(context, 'one')).status).toBe(502)
    expect((await ask(context, 'two')).status).toBe(200)
    throw new Error('no idea')
  })
  expect((await playFirst(source, sampler)).end).toMatchObject({ kind: 'failed', phase: 'agent' })
})
