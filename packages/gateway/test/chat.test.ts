import { expect, test } from 'vitest'

import { bytes, byteTokenizer, reply } from './support/byte-renderer.ts'
import { bench, chatTools, events, toolResult, user, type Chunk } from './support/harness.ts'

test('§18.11 finish_reason is tool_calls with calls, length at the limit, stop otherwise, streamed or not', async () => {
  const cases = [
    ['⟦look {"at": 1}⟧', 100, 'tool_calls'],
    ['a long story', 4, 'length'],
    ['short', 100, 'stop'],
  ] as const
  for (const [answer, max_tokens, finish] of cases) {
    const { chat, post } = bench([answer])
    const plain = await chat([user('go')], { max_tokens })
    expect(plain.choices[0]!.finish_reason).toBe(finish)
    const messages = [user('again')]
    const streamed = await post('/chat/completions', { messages, max_tokens, stream: true })
    const last = (await events(streamed)).at(-2) as Chunk
    expect(last.choices[0]!.finish_reason).toBe(finish)
  }
})

test('§18.12 usage counts the tokens that the sampler saw and gave, and the prefix that was there before', async () => {
  const { chat, sampler } = bench(['⟦look {}⟧', 'done'])
  const first = await chat([user('go')], { tools: chatTools('look') })
  expect(first.usage.prompt_tokens).toBe(sampler.seen[0]!.prompt.length)
  expect(first.usage.completion_tokens).toBe(reply('⟦look {}⟧').length)
  expect(first.usage.prompt_tokens_details.cached_tokens).toBe(0)
  const said = first.choices[0]!.message
  const second = await chat([user('go'), said, toolResult(said.tool_calls![0]!.id, 'here')], {
    tools: chatTools('look'),
  })
  expect(second.usage.prompt_tokens).toBe(sampler.seen[1]!.prompt.length)
  expect(second.usage.prompt_tokens_details.cached_tokens).toBe(
    first.usage.prompt_tokens + first.usage.completion_tokens,
  )
})

test('§18.13 F58 a streamed call begins with index, id and name, and its pieces join to the arguments', async () => {
  const long = JSON.stringify({ text: 'x'.repeat(700) })
  const { chat, post } = bench([`ok⟦look ${long}⟧⟦take {"n": 2}⟧`])
  const plain = (await chat([user('go')])).choices[0]!.message
  const streamed = await post('/chat/completions', { messages: [user('more')], stream: true })
  const deltas = ((await events(streamed)).slice(0, -1) as Chunk[]).flatMap(
    (chunk) => chunk.choices[0]?.delta.tool_calls ?? [],
  )
  const first = [0, 1].map((index) => deltas.find((delta) => delta.index === index)!)
  expect(first).toMatchObject([
    { id: expect.stringMatching(/^call_.{20}/), function: { name: 'look', arguments: '' } },
    { id: expect.stringMatching(/^call_.{20}/), function: { name: 'take', arguments: '' } },
  ])
  const later = deltas.filter((delta) => !first.includes(delta))
  expect(later.every((delta) => !('name' in delta.function))).toBe(true)
  const joined = [0, 1].map((index) =>
    later.flatMap((delta) => (delta.index === index ? [delta.function.arguments] : [])).join(''),
  )
  expect(joined).toEqual(plain.tool_calls!.map((call) => call.function.arguments))
})

test('§18.14 F51 role first, one finish chunk, usage only if asked for, then [DONE]', async () => {
  const { post } = bench(['hello'])
  const ask = async (more: object) =>
    events(await post('/chat/completions', { messages: [user('go')], stream: true, ...more }))
  const plain = await ask({})
  expect((plain[0] as Chunk).choices[0]!.delta).toEqual({ role: 'assistant', content: '' })
  expect(plain.at(-1)).toBe('[DONE]')
  const chunks = plain.slice(0, -1) as Chunk[]
  expect(chunks.filter(({ choices }) => choices.length === 0)).toEqual([])
  expect(chunks.filter(({ choices }) => choices[0]?.finish_reason != null)).toHaveLength(1)
  const counted = await ask({ stream_options: { include_usage: true } })
  const usage = counted.at(-2) as Chunk
  expect(usage.choices).toEqual([])
  expect(usage.usage).toMatchObject({ completion_tokens: 6 })
})

test('§18.15 F55 characters that lie in several tokens stream whole and equal the text of the same reply unstreamed', async () => {
  const said = 'Grüße 👩‍👩‍👧 你好'
  const { chat, post } = bench([said])
  const streamed = await events(
    await post('/chat/completions', { messages: [user('go')], stream: true }),
  )
  const pieces = (streamed.slice(0, -1) as Chunk[]).map(
    ({ choices }) => choices[0]!.delta.content ?? '',
  )
  expect(pieces.length).toBeGreaterThan(8)
  expect(pieces.join('')).toBe(said)
  expect(pieces.join('')).not.toContain('\uFFFD')
  expect((await chat([user('go')])).choices[0]!.message.content).toBe(said)
})

test('F55 a reply that ends inside a character keeps its ids, and its log-probabilities have bytes', async () => {
  const cut = { ids: bytes('é').slice(0, 1), stop: 'length' } as const
  const { chat, record } = bench([cut], { gateway: { tokenizer: byteTokenizer } })
  const { choices } = await chat([user('go')], { logprobs: true })
  expect(choices[0]!.logprobs!.content[0]!.bytes).toEqual([0xc3])
  expect([...record.replies[0]!.sample.ids]).toEqual([0xc3])
})

test('§18.18 ids of calls are unique over all calls of a rollout', async () => {
  const { chat } = bench(['⟦a {}⟧⟦b {}⟧'])
  const ids: string[] = []
  for (let turn = 0; turn < 5; turn += 1) {
    const { choices } = await chat([user('go')], { n: 2 })
    for (const { message } of choices) ids.push(...message.tool_calls!.map(({ id }) => id))
  }
  expect(new Set(ids).size).toBe(20)
})

test('§18.18 ids of calls are unique although a client sends one seed with all its requests', async () => {
  const { chat, sampler } = bench(['⟦a {}⟧'], { attempt: { sampling: 'respect' } })
  const ids: string[] = []
  for (const words of ['one', 'two', 'two']) {
    const { choices } = await chat([user(words)], { seed: 7 })
    ids.push(choices[0]!.message.tool_calls![0]!.id)
  }
  expect(new Set(ids).size).toBe(3)
  expect(sampler.seen.map(({ request }) => request.seeds)).toEqual([[7], [7], [7]])
})

test('§18.19 content is null when there are only calls, and holds no call markup', async () => {
  const { chat } = bench(['⟦a {}⟧', 'Well.⟦a {}⟧', ''])
  expect((await chat([user('1')])).choices[0]!.message.content).toBeNull()
  expect((await chat([user('2')])).choices[0]!.message.content).toBe('Well.')
  expect((await chat([user('3')])).choices[0]!.message.content).toBe('')
})

test('§18.20 n = 3 gives three choices of one prompt, streamed or not', async () => {
  const { chat, post, attempt, record } = bench(['one', 'two', 'three'])
  const plain = await chat([user('go')], { n: 3 })
  expect(plain.choices.map(({ message }) => message.content)).toEqual(['one', 'two', 'three'])
  expect(attempt.calls[0]!.samples.map(({ fork }) => fork)).toEqual([
    undefined,
    'sibling',
    'sibling',
  ])
  expect(new Set(record.replies.map(({ prompt }) => prompt)).size).toBe(1)
  const streamed = await events(
    await post('/chat/completions', { messages: [user('b')], n: 3, stream: true }),
  )
  const ended = (streamed.slice(0, -1) as Chunk[]).filter(
    ({ choices }) => choices[0]!.finish_reason !== null,
  )
  expect(ended.map(({ choices }) => choices[0]!.index).toSorted((a, b) => a - b)).toEqual([0, 1, 2])
})

test('§18.31 every error has the form that clients read', async () => {
  const { gateway, attempt, post } = bench(['x'], { gateway: { maxBodyBytes: 100 } })
  const url = `${gateway.baseURL(attempt)}/chat/completions`
  const headers = { authorization: `Bearer ${attempt.key}` }
  const bad = await Promise.all([
    gateway.fetch(url, { method: 'POST', headers, body: '{"messages": [' }),
    gateway.fetch(url, { method: 'POST', headers, body: '[]' }),
    post('/chat/completions', { messages: [user('x'.repeat(200))] }),
    post('/chat/completions', { messages: [] }),
    post('/embeddings', {}),
    gateway.fetch(`${gateway.origin}/nowhere`),
  ])
  expect(bad.map(({ status }) => status)).toEqual([400, 400, 400, 400, 404, 404])
  for (const response of bad) {
    expect(response.headers.get('content-type')).toContain('application/json')
    expect(response.headers.get('x-should-retry')).toBe('false')
    const { error } = (await response.json()) as { error: Record<string, unknown> }
    expect(Object.keys(error).toSorted()).toEqual(['code', 'message', 'param', 'type'])
  }
})

test('§18.31 a body that does not tell its length is counted as it comes', async () => {
  const { gateway, attempt } = bench(['x'], { gateway: { maxBodyBytes: 1_000 } })
  const send = (content: string) => {
    const pieces = JSON.stringify({ messages: [user(content)] }).match(/.{1,100}/gsu)!
    return gateway.fetch(`${gateway.baseURL(attempt)}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${attempt.key}`, 'transfer-encoding': 'chunked' },
      body: ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece))),
      duplex: 'half',
    })
  }
  expect((await send('grüße '.repeat(50))).status).toBe(200)
  // More bytes than are taken, and fewer characters.
  const refused = await send('你好'.repeat(200))
  expect(refused.status).toBe(400)
  expect(await refused.text()).toContain('request_too_large')
})

test('§18.32 models lists aliases; an unknown name means the policy, or is refused when names are strict', async () => {
  const { gateway, attempt, chat } = bench(['x'])
  const list = await gateway.fetch(`${gateway.baseURL(attempt)}/models`, {
    headers: { 'x-api-key': attempt.key },
  })
  expect(await list.json()).toMatchObject({ data: [{ id: 'policy' }] })
  const one = (id: string) =>
    gateway.fetch(`${gateway.baseURL(attempt)}/models/${id}`, {
      headers: { 'x-api-key': attempt.key },
    })
  expect(await (await one('policy')).json()).toMatchObject({ id: 'policy', object: 'model' })
  expect((await one('gpt-4o')).status).toBe(404)
  expect((await chat([user('go')], { model: 'gpt-4o' })).status).toBe(200)
  const strict = bench(['x'], { gateway: { strictModels: true } })
  const refused = await strict.chat([user('go')], { model: 'gpt-4o' })
  expect(refused.status).toBe(404)
  expect(refused.error).toMatchObject({ code: 'model_not_found' })
})

test('§18.33 developer is system, parts of text are text', async () => {
  const { chat, sampler } = bench(['x'])
  await chat([{ role: 'system', content: 'be kind' }, user('go')])
  await chat([
    {
      role: 'developer',
      content: [
        { type: 'text', text: 'be ' },
        { type: 'text', text: 'kind' },
      ],
    },
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
  ])
  expect(sampler.seen[1]!.prompt).toEqual(sampler.seen[0]!.prompt)
})

test('§18.43 token ids come only when asked for, and never inside the message', async () => {
  const { chat, post } = bench(['hi'])
  const plain = await chat([user('go')])
  expect(plain).not.toHaveProperty('prompt_token_ids')
  const asked = await chat([user('go')], { return_token_ids: true })
  expect(asked.choices[0]!.token_ids).toEqual(reply('hi'))
  expect(asked.prompt_token_ids).toHaveLength(asked.usage.prompt_tokens)
  expect(Object.keys(asked.choices[0]!.message).toSorted()).toEqual(['content', 'refusal', 'role'])
  const streamed = await events(
    await post('/chat/completions', {
      messages: [user('go')],
      stream: true,
      return_token_ids: true,
    }),
  )
  expect(streamed[0]).toMatchObject({ prompt_token_ids: asked.prompt_token_ids })
  expect(streamed.at(-2)).toMatchObject({ choices: [{ token_ids: reply('hi') }] })
})

test('F13 of a reply that reached the limit no call is given, streamed or not', async () => {
  const cut = { ids: reply('⟦a {}⟧⟦b {"x": ', false), stop: 'length' } as const
  const { chat, post } = bench([cut])
  const { choices } = await chat([user('go')])
  expect(choices[0]!.finish_reason).toBe('length')
  expect(choices[0]!.message).not.toHaveProperty('tool_calls')
  const streamed = await events(
    await post('/chat/completions', { messages: [user('b')], stream: true }),
  )
  expect(JSON.stringify(streamed)).not.toContain('tool_calls')
})

test('F49 ids and log-probabilities of a streamed reply are those of the same reply unstreamed', async () => {
  const { chat, post, record } = bench(['‹hm›well⟦a {"k": 1}⟧'])
  await chat([user('go')])
  await (await post('/chat/completions', { messages: [user('b')], stream: true })).text()
  const [plain, streamed] = record.replies
  expect(streamed!.sample).toEqual(plain!.sample)
  expect([...plain!.sample.ids]).toEqual(reply('‹hm›well⟦a {"k": 1}⟧'))
})
