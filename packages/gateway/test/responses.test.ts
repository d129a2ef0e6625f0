import { promptIds } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { byteTokenizer, bytes, reply } from './support/byte-renderer.ts'
import { bench, chatTools, specOf, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

interface Item {
  readonly type: string
  readonly id: string
  readonly call_id: string
  readonly content: readonly { readonly text: string }[]
}
interface ResponseBody {
  readonly id: string
  readonly status: string
  readonly output: readonly Item[]
  readonly incomplete_details: object | null
  readonly error?: { readonly code: string; readonly param: string }
}

const tools = [{ type: 'function', ...specOf('look') }]

async function ask(it: ReturnType<typeof bench>, body: object): Promise<ResponseBody> {
  return (await (await it.post('/responses', { model: 'policy', ...body })).json()) as ResponseBody
}

test('§18.34 items sent back go on from the sampled ids, and so do references and previous_response_id', async () => {
  for (const form of ['items', 'reference', 'previous'] as const) {
    const it = bench(['‹hm›first', 'second'])
    const first = await ask(it, { instructions: 's', input: 'go' })
    expect(first.output.map(({ type }) => type)).toEqual(['reasoning', 'message'])
    const next = { role: 'user', content: 'on' }
    const input = {
      items: [{ role: 'user', content: 'go' }, ...first.output, next],
      reference: [
        { role: 'user', content: 'go' },
        ...first.output.map(({ id }) => ({ type: 'item_reference', id })),
        next,
      ],
      previous: [next],
    }[form]
    const more = form === 'previous' ? { previous_response_id: first.id } : {}
    await ask(it, { instructions: 's', input, ...more })
    expect(it.record.replies.map(({ restart }) => restart)).toEqual([undefined, undefined])
  }
})

test('§18.34 a reference to an unknown item, or response, is refused', async () => {
  const it = bench(['x'])
  const item = await ask(it, { input: [{ type: 'item_reference', id: 'msg_1' }] })
  expect(item.error).toMatchObject({ code: 'invalid_request', param: 'input' })
  const response = await ask(it, { input: 'go', previous_response_id: 'resp_1' })
  expect(response.error).toMatchObject({ param: 'previous_response_id' })
})

test('§18.34 a tool loop over items', async () => {
  const it = bench(['⟦look {"at": 1}⟧⟦look {"at": 2}⟧', 'done'])
  const first = await ask(it, { input: 'go', tools })
  const calls = first.output.filter(({ type }) => type === 'function_call')
  expect(calls).toHaveLength(2)
  const results = calls.map(({ call_id }) => ({
    type: 'function_call_output',
    call_id,
    output: 'seen',
  }))
  const second = await ask(it, { input: [user('go'), ...first.output, ...results], tools })
  expect(second.output[0]!.content[0]!.text).toBe('done')
  expect(it.record.replies[1]!.restart).toBeUndefined()
  expect(it.record.log).toEqual(['conversation 1', 'reply', 'observation 2 2', 'reply'])
})

test('§18.35 a stream ends with the whole response, completed or incomplete, and counts its events', async () => {
  for (const [limit, last] of [
    [100, 'response.completed'],
    [4, 'response.incomplete'],
  ] as const) {
    const it = bench(['‹hm›some text⟦look {"at": 1}⟧'])
    const response = await it.post('/responses', {
      input: 'go',
      stream: true,
      max_output_tokens: limit,
    })
    const all = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
    const events = all.map(
      (line) =>
        JSON.parse(line.slice(6)) as {
          type: string
          sequence_number: number
          response?: ResponseBody
          delta?: string
        },
    )
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(
      events.map((_, index) => index),
    )
    expect(events[0]!.type).toBe('response.created')
    expect(events.at(-1)!.type).toBe(last)
    const whole = await ask(bench(['‹hm›some text⟦look {"at": 1}⟧']), {
      input: 'go',
      max_output_tokens: limit,
    })
    const types = (body: ResponseBody) => body.output.map(({ type }) => type)
    expect(types(events.at(-1)!.response!)).toEqual(types(whole))
    const added = events.filter(({ type }) => type === 'response.output_item.added')
    const done = events.filter(({ type }) => type === 'response.output_item.done')
    expect(added.length).toBe(done.length)
    expect(done.length).toBe(whole.output.length)
  }
})

test('§18.35 a stream that fails ends with response.failed', async () => {
  let tokens = 0
  const sampler = byteSampler(['hello'], {
    between: async () => {
      tokens += 1
      if (tokens > 2) throw new Error('gone')
    },
  })
  const it = bench([], { sampler })
  const response = await it.post('/responses', { input: 'go', stream: true })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let seen = ''
  const readAll = async () => {
    for (;;) seen += decoder.decode((await reader.read()).value, { stream: true })
  }
  await expect(readAll()).rejects.toThrow('the sampler failed')
  expect(seen).toContain('event: response.failed')
  expect(seen).not.toContain('response.completed')
})

test('§18.36 a chat call and a Responses call of equal meaning stand in one place', async () => {
  const it = bench(['⟦look {"at": 1}⟧', 'done'])
  const first = await it.chat([{ role: 'system', content: 's' }, user('go')], {
    tools: chatTools('look'),
  })
  const call = first.choices[0]!.message.tool_calls![0]!
  await ask(it, {
    instructions: 's',
    input: [
      user('go'),
      { type: 'function_call', call_id: call.id, name: 'look', arguments: '{"at":1}' },
      { type: 'function_call_output', call_id: call.id, output: 'seen' },
    ],
    tools,
  })
  expect(it.record.replies[1]!.restart).toBeUndefined()
})

test('tools that run on a vendor’s servers are refused', async () => {
  const refused = await ask(bench(['x']), { input: 'go', tools: [{ type: 'web_search' }] })
  expect(refused.error).toMatchObject({ code: 'unsupported_parameter', param: 'tools' })
})

test('§18.37 completions sample exactly after the ids that were sent, and echo none', async () => {
  const it = bench(['one', 'two'], { gateway: { tokenizer: byteTokenizer } })
  const complete = async (prompt: unknown, more: object = {}) =>
    (await (await it.post('/completions', { prompt, ...more })).json()) as {
      choices: readonly { text: string; finish_reason: string }[]
    }
  const ids = bytes('once upon')
  const first = await complete(ids)
  expect([...it.sampler.seen[0]!.prompt]).toEqual(ids)
  expect(first.choices).toMatchObject([{ text: 'one', finish_reason: 'stop' }])
  const more = [...ids, ...reply('one'), ...bytes(' more')]
  await complete([more])
  expect([...it.sampler.seen[1]!.prompt]).toEqual(more)
  expect(it.record.replies[1]!.restart).toBeUndefined()
  expect([...promptIds(it.record.replies[1]!.prompt)]).toEqual(more)
  await complete('plain text')
  expect([...it.sampler.seen[2]!.prompt]).toEqual(bytes('plain text'))
  const streamed = await it.post('/completions', { prompt: ids, stream: true })
  expect(await streamed.text()).toContain('"text":"two"')
})

test('§18.28 completions give the alternatives that were asked for, or say that there are none', async () => {
  const sampler = byteSampler(['hi'], { alternatives: true })
  const it = bench([], { sampler, gateway: { tokenizer: byteTokenizer } })
  const response = await it.post('/completions', { prompt: bytes('go'), logprobs: 2 })
  const { choices } = (await response.json()) as { choices: readonly { logprobs: object }[] }
  expect(choices[0]!.logprobs).toMatchObject({
    tokens: ['h', 'i', ''],
    top_logprobs: [
      { a: -1, b: -2 },
      { a: -1, b: -2 },
      { a: -1, b: -2 },
    ],
  })
  const without = await bench(['x']).post('/completions', { prompt: bytes('go'), logprobs: 2 })
  expect(await without.json()).toMatchObject({
    error: { code: 'unsupported_parameter', param: 'logprobs' },
  })
})

test('§18.37 a prompt of many ids is no burden to those after it, and each goes on from the longest reply', async () => {
  const it = bench(['one', 'two', 'three', 'four'], {
    sampler: byteSampler(['one', 'two', 'three', 'four'], { contextWindow: 1_000_000 }),
  })
  const long = Array.from({ length: 200_000 }, (_, at) => at % 250)
  const complete = async (prompt: readonly number[]) => {
    expect((await it.post('/completions', { prompt })).status).toBe(200)
  }
  await complete(long)
  const further = [...long, ...reply('one'), 1]
  await complete(further)
  await complete([...further, ...reply('two')])
  await complete([...further, 2])
  expect(it.record.replies.map(({ restart }) => restart)).toEqual([
    undefined,
    undefined,
    undefined,
    'branch',
  ])
  expect(it.attempt.calls.map(({ reusedTokens }) => reusedTokens)).toEqual([
    0,
    long.length + reply('one').length,
    further.length + reply('two').length,
    long.length + reply('one').length,
  ])
  expect(it.record.replies[3]!.prompt.length).toBe(further.length + 1)
})

test('§18.37 completions of one prompt are siblings with seeds of their own; another prompt begins anew', async () => {
  const it = bench(['one', 'two', 'three'], { attempt: { seed: 3 } })
  for (const prompt of ['go', 'go', 'other'])
    await it.post('/completions', { prompt: bytes(prompt) })
  expect(it.record.replies.map(({ restart }) => restart)).toEqual([
    undefined,
    'sibling',
    'new_conversation',
  ])
  expect(new Set(it.sampler.seen.map(({ request }) => request.seeds![0])).size).toBe(3)
})

test('§18.37 a text is refused where nothing can encode it', async () => {
  const response = await bench(['x']).post('/completions', { prompt: 'text' })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain('token ids')
})
