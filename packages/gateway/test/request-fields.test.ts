import { expect, test } from 'vitest'

import { bytes, byteTokenizer, mark, reply } from './support/byte-renderer.ts'
import { bench, chatTools, events, user, type Chunk } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

test('§18.21 the smaller of max_tokens and max_completion_tokens counts, and the window bounds it', async () => {
  const sampler = byteSampler(['hello'], { contextWindow: 20 })
  const { chat, attempt } = bench([], { sampler })
  await chat([user('go')], { max_tokens: 5 })
  await chat([user('go')], { max_completion_tokens: 5 })
  await chat([user('go')], { max_tokens: 9, max_completion_tokens: 5 })
  await chat([user('go')], { max_tokens: 900 })
  const room = 20 - sampler.seen[0]!.prompt.length
  expect(sampler.seen.map(({ request }) => request.maxTokens)).toEqual([5, 5, 5, room])
  expect(attempt.calls.map(({ clamped }) => clamped)).toEqual([false, false, false, true])
})

test('§18.21 a client that says nothing has what the run allows, else what the gateway does', async () => {
  const said = bench(['x'], { attempt: { limits: { replyTokens: 5_000 } } })
  await said.chat([user('go')])
  await said.chat([user('go')], { max_tokens: 9_000 })
  const silent = bench(['x'], { gateway: { replyTokens: 300 } })
  await silent.chat([user('go')])
  const allowed = [said, silent].flatMap(({ sampler }) => sampler.seen)
  expect(allowed.map(({ request }) => request.maxTokens)).toEqual([5_000, 5_000, 300])
  expect(said.attempt.calls.map(({ clamped }) => clamped)).toEqual([false, true])
})

test('§18.22 a stop text ends the reply before it; the ids kept are the shortest that hold it, and the next turn goes on from them', async () => {
  const { chat, post, sampler, record } = bench(['one STOP two', 'next'])
  const first = await chat([user('go')], { stop: 'STOP' })
  expect(first.choices[0]!.message.content).toBe('one ')
  expect(first.choices[0]!.finish_reason).toBe('stop')
  const { ids, logprobs } = record.replies[0]!.sample
  expect([...ids]).toEqual(bytes('one STOP'))
  expect(logprobs).toHaveLength(ids.length)
  await chat([user('go'), { role: 'assistant', content: 'one ' }, user('and?')])
  const before = [...sampler.seen[0]!.prompt, ...ids]
  expect([...sampler.seen[1]!.prompt].slice(0, before.length)).toEqual(before)

  const { post: again } = bench(['one STOP two'])
  void post
  const streamed = await events(
    await again('/chat/completions', { messages: [user('go')], stop: ['STOP'], stream: true }),
  )
  const text = (streamed.slice(0, -1) as Chunk[])
    .map((it) => it.choices[0]!.delta.content ?? '')
    .join('')
  expect(text).toBe('one ')
})

test('§18.23 parallel_tool_calls: false ends the reply, and its ids, after the first call', async () => {
  const { chat, record } = bench(['⟦a {}⟧⟦b {}⟧'])
  const { choices } = await chat([user('go')], { parallel_tool_calls: false })
  expect(choices[0]!.message.tool_calls).toHaveLength(1)
  expect([...record.replies[0]!.sample.ids]).toEqual(reply('⟦a {}⟧', false))
  expect(record.replies[0]!.sample.logprobs).toHaveLength(reply('⟦a {}⟧', false).length)
})

test('§18.24 tool_choice none shows no tools; a forced call is refused', async () => {
  const { chat, sampler } = bench(['no'])
  await chat([user('go')], { tools: chatTools('look'), tool_choice: 'none' })
  expect(sampler.seen[0]!.prompt).not.toContain(mark.system)
  const named = { type: 'function', function: { name: 'look' } }
  for (const tool_choice of ['required', named]) {
    const forced = await chat([user('go')], { tools: chatTools('look'), tool_choice })
    expect(forced.status).toBe(400)
    expect(forced.error).toMatchObject({ code: 'unsupported_parameter', param: 'tool_choice' })
  }
})

test('§18.24 what looks like a call is text for who wanted none, and the next turn goes on from its ids', async () => {
  const said = 'Well.⟦look {}⟧'
  const { chat, post, record } = bench([said])
  const { choices } = await chat([user('go')], { tool_choice: 'none' })
  expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: said } })
  expect(choices[0]!.message).not.toHaveProperty('tool_calls')
  await chat([user('go'), choices[0]!.message, user('on')], { tool_choice: 'none' })
  expect(record.replies[1]!.restart).toBeUndefined()
  const streamed = await events(
    await post('/chat/completions', {
      messages: [user('b')],
      tools: chatTools('look'),
      tool_choice: 'none',
      stream: true,
    }),
  )
  const pieces = (streamed.slice(0, -1) as Chunk[]).map((it) => it.choices[0]!.delta.content ?? '')
  expect(pieces.join('')).toBe(said)
  expect(JSON.stringify(streamed)).not.toContain('tool_calls')
})

test('§18.25 there is no default seed; a seeded attempt gives equal requests different seeds', async () => {
  const plain = bench(['x'])
  for (let index = 0; index < 8; index += 1) await plain.chat([user('go')])
  expect(plain.sampler.seen.every(({ request }) => request.seeds === undefined)).toBe(true)
  const seeded = bench(['x'], { attempt: { seed: 7 } })
  for (let index = 0; index < 8; index += 1) await seeded.chat([user('go')])
  expect(new Set(seeded.sampler.seen.map(({ request }) => request.seeds![0])).size).toBe(8)
})

test('§18.26 a temperature of the client is taken, not used, recorded and named', async () => {
  const { chat, sampler, attempt } = bench(['x'])
  const { status, headers } = await chat([user('go')], { temperature: 0 })
  expect(status).toBe(200)
  expect(sampler.seen[0]!.request.temperature).toBeUndefined()
  expect(attempt.calls[0]!.overridden).toEqual(['temperature'])
  expect(headers.get('x-tiltyard-ignored')).toBe('temperature')
  const own = bench(['x'], { attempt: { sampling: 'respect' } })
  await own.chat([user('go')], { temperature: 0 })
  expect(own.sampler.seen[0]!.request.temperature).toBe(0)
})

test('§18.26 no setting of the client’s has effect unseen', async () => {
  const all = { top_k: 5, top_p: 0, min_p: 0.1, seed: 1 }
  const { chat, attempt } = bench(['x'])
  await chat([user('go')], all)
  expect(attempt.calls[0]!.overridden).toEqual(['top_k', 'top_p', 'min_p', 'seed'])
  const own = bench(['x'], { attempt: { sampling: 'respect' } })
  await own.chat([user('go')], { top_p: 0 })
  expect(own.sampler.seen[0]!.request).toMatchObject({ topK: 1 })
  const refused = await own.chat([user('go')], { min_p: 0.1 })
  expect(refused.error).toMatchObject({ code: 'unsupported_parameter', param: 'min_p' })
})

test.each([
  ['frequency_penalty', 1],
  ['presence_penalty', 0.5],
  ['logit_bias', { 5: 1 }],
  ['functions', []],
])('§18.27 %s is refused by name', async (param, value) => {
  const { chat, sampler } = bench(['x'])
  const { status, error } = await chat([user('go')], { [param]: value })
  expect(status).toBe(400)
  expect(error).toMatchObject({ code: 'unsupported_parameter', param })
  expect(sampler.seen).toEqual([])
})

test('§18.27 fields without effect are named in a header', async () => {
  const { chat } = bench(['x'])
  const { headers } = await chat([user('go')], {
    shiny: 1,
    response_format: { type: 'json_object' },
  })
  expect(headers.get('x-tiltyard-ignored')).toBe('response_format, shiny')
  const strict = { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: {} } }
  expect((await chat([user('go')], { response_format: strict })).status).toBe(400)
})

test('§18.28 log-probabilities come one per sampled token; alternatives are real or refused', async () => {
  const plain = bench(['hi'], { gateway: { tokenizer: byteTokenizer } })
  const { choices } = await plain.chat([user('go')], { logprobs: true })
  expect(choices[0]!.logprobs!.content.map(({ token }) => token)).toEqual(['h', 'i', ''])
  expect((await plain.chat([user('go')], { logprobs: true, top_logprobs: 2 })).status).toBe(400)
  const sampler = byteSampler(['hi'], { alternatives: true })
  const rich = bench([], { sampler, gateway: { tokenizer: byteTokenizer } })
  const answer = await rich.chat([user('go')], { logprobs: true, top_logprobs: 2 })
  expect(answer.choices[0]!.logprobs!.content[0]!.top_logprobs).toMatchObject([
    { token: 'a', logprob: -1 },
    { token: 'b', logprob: -2 },
  ])
})
