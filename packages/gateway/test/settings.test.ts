import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { reply } from './support/byte-renderer.ts'
import { bench, chatTools, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

// F74: an option that is taken has an effect; each here has none but this test.

test('exposeTokenIds: ids go out unasked', async () => {
  const { chat } = bench(['hi'], { gateway: { exposeTokenIds: true } })
  const { choices } = await chat([user('go')])
  expect(choices[0]!.token_ids).toEqual(reply('hi'))
})

test('reasoningFields: reasoning goes out under these names and no other', async () => {
  const said = { content: 'hi', reasoning: 'hm', reasoning_content: 'hm' }
  for (const reasoningFields of [['reasoning'], ['reasoning_content'], []] as const) {
    const { chat } = bench(['‹hm›hi'], { gateway: { reasoningFields } })
    const { choices } = await chat([user('go')])
    for (const field of ['reasoning', 'reasoning_content'] as const)
      expect(choices[0]!.message[field]).toBe(
        (reasoningFields as readonly string[]).includes(field) ? said[field] : undefined,
      )
  }
})

test('lenient: a forced call is taken, and named as without effect', async () => {
  const { chat } = bench(['hi'], { gateway: { lenient: ['tool_choice'] } })
  const asked = { tools: chatTools('look'), tool_choice: 'required' }
  const { status, headers } = await chat([user('go')], asked)
  expect([status, headers.get('x-tiltyard-ignored')]).toEqual([200, 'tool_choice'])
})

test('maxN: more choices than these are refused', async () => {
  const { chat } = bench(['hi'], { gateway: { maxN: 2 } })
  expect((await chat([user('go')], { n: 2 })).choices).toHaveLength(2)
  const { status, error } = await chat([user('go')], { n: 3 })
  expect([status, error?.param]).toEqual([400, 'n'])
})

test('wallClock: the time of an answer is of this clock', async () => {
  const { post } = bench(['hi'], { gateway: { wallClock: () => 1_764_000_000_999 } })
  const answer = await post('/chat/completions', { messages: [user('go')] })
  expect(await answer.json()).toMatchObject({ created: 1_764_000_000 })
})

test('keepaliveMs: so often a silent stream shows that it lives', async () => {
  const clock = simulatedClock()
  const sampler = byteSampler(['late'], { before: () => clock.sleep(10_500) })
  const { post } = bench([], { sampler, gateway: { clock, keepaliveMs: 1_000 } })
  const asked = post('/chat/completions', { messages: [user('go')], stream: true })
  const text = await clock.drive(asked.then((answer) => answer.text()))
  expect(text.match(/^: keepalive$/gm)).toHaveLength(10)
})

test('callMs: a sampler that never answers fails the call after this time, and is not asked again', async () => {
  const clock = simulatedClock()
  let asked = 0
  const never = () => {
    asked += 1
    return new Promise<void>(() => {})
  }
  const { post } = bench([], {
    sampler: byteSampler(['never'], { before: never }),
    gateway: { clock, callMs: 5_000 },
  })
  const answer = await clock.drive(post('/chat/completions', { messages: [user('go')] }))
  expect([answer.status, asked, clock.now()]).toEqual([502, 1, 5_000])
})

test('callMs: a sampler that fails is asked again only while the call has time', async () => {
  const clock = simulatedClock()
  const fails = async () => {
    await clock.sleep(2_000)
    throw new Error('503')
  }
  const { post } = bench([], {
    sampler: byteSampler(['never'], { before: fails }),
    gateway: { clock, callMs: 5_000, samplerRetries: 9 },
  })
  const answer = await clock.drive(post('/chat/completions', { messages: [user('go')] }))
  // 2,000, a pause of 250, 2,000, a pause of 500: then the time is up in the middle of the third try.
  expect([answer.status, clock.now()]).toEqual([502, 5_000])
})
