import { ConfigError, promptIds, type PlayedReply, type Renderer } from '@tiltyard/core'
import { expect, test } from 'vitest'

import { byteRenderer, mark, reply, text } from './support/byte-renderer.ts'
import { bench, chatTools, system, toolResult, user } from './support/harness.ts'
import { loop, withCalls, withoutReasoning } from './support/loop.ts'
import { byteSampler } from './support/sampler.ts'

/** The ids of a reply's prompt and of the reply. */
function whole({ prompt, sample }: PlayedReply): number[] {
  return [...promptIds(prompt), ...sample.ids]
}

function startsWith(all: ArrayLike<number>, start: readonly number[]): boolean {
  return start.every((id, at) => all[at] === id)
}

test('§18.39 ids and log-probabilities of each sample have one length and are finite', async () => {
  const it = bench(['⟦look {}⟧'])
  await loop(it, 3)
  for (const { sample } of it.record.replies) {
    expect(sample.logprobs).toHaveLength(sample.ids.length)
    expect(sample.logprobs.every(Number.isFinite)).toBe(true)
    expect(sample.ids.every((id) => id >= 0 && id <= mark.pair)).toBe(true)
  }
})

test('§18.40 F50 in a tool loop of ten turns each prompt begins with the prompt and ids before it, though decoding and encoding them gives others', async () => {
  const odd = reply('⟦look {}⟧').flatMap((id) => (id === mark.callOpen ? [mark.pair, id] : [id]))
  const it = bench([{ ids: odd }])
  await loop(it, 10)
  const { seen } = it.sampler
  for (let turn = 1; turn < seen.length; turn += 1)
    expect(startsWith(seen[turn]!.prompt, [...seen[turn - 1]!.prompt, ...odd])).toBe(true)
  expect(it.record.replies.map(({ restart }) => restart)).toEqual(Array(10).fill(undefined))
})

test('§18.42 F50 a reply cut by length is closed by the template, once, before the next turn', async () => {
  const { chat, sampler, record } = bench([{ ids: reply('half', false), stop: 'length' }, 'rest'])
  await chat([user('go')])
  await chat([user('go'), { role: 'assistant', content: 'half' }, user('on')])
  const before = whole(record.replies[0]!)
  const after = [...sampler.seen[1]!.prompt].slice(before.length)
  expect(before).not.toContain(undefined)
  expect(after[0]).toBe(mark.end)
  expect(after.filter((id) => id === mark.end)).toHaveLength(2)
})

const forks: readonly (readonly [string, object[], object, string])[] = [
  [
    'an edited reply',
    [system('s'), user('go'), { role: 'assistant', content: 'edited' }, user('on')],
    {},
    'edited_text',
  ],
  [
    'a changed system prompt',
    [system('other'), user('go'), { role: 'assistant', content: 'first' }, user('on')],
    {},
    'system_changed',
  ],
  [
    'other tools',
    [system('s'), user('go'), { role: 'assistant', content: 'first' }, user('on')],
    { tools: chatTools('look') },
    'context_changed',
  ],
  ['another conversation', [system('you are a judge'), user('well?')], {}, 'new_conversation'],
]

test.each(forks)(
  '§18.44 §18.46 %s starts anew, with the cause, and changes no earlier reply',
  async (_, messages, more, cause) => {
    const { chat, record, sampler } = bench(['first', 'second'])
    await chat([system('s'), user('go')])
    const before = whole(record.replies[0]!)
    await chat(messages, more)
    expect(record.replies[1]!.restart).toBe(cause)
    expect(whole(record.replies[0]!)).toEqual(before)
    const first = messages[0] as { content: string }
    expect(text(sampler.seen[1]!.prompt)).toContain(first.content)
  },
)

test.each([
  ['arguments', { arguments: '{"at": 2}' }],
  ['name', { name: 'take' }],
])('§18.44 an edited call (%s) starts anew', async (_, edit) => {
  const it = bench(['⟦look {"at": 1}⟧'])
  await loop(it, 2, withCalls(edit))
  expect(it.record.replies[1]!.restart).toBe('edited_args')
})

test('§18.44 edited reasoning starts anew, and is what the policy is shown', async () => {
  const it = bench(['‹hm›⟦look {}⟧'])
  await loop(it, 2, (message) => ({ ...message, reasoning_content: 'aha', reasoning: 'aha' }))
  expect(it.record.replies[1]!.restart).toBe('edited_reasoning')
  expect(text(it.sampler.seen[1]!.prompt)).toContain('aha')
})

test('§18.45 F56 a template that drops earlier reasoning forks at a new user turn, one that keeps it goes on', async () => {
  expect((await playTwoTurns(true))[1]!.restart).toBe('reasoning_stripped')
  const kept = await playTwoTurns(false)
  expect(kept[1]!.restart).toBeUndefined()
  expect(kept[0]!.trained).toBe(true)
})

test('F56 with reasoning: client, reasoning that the client leaves out starts anew', async () => {
  const it = bench(['‹hm›⟦look {}⟧'], { gateway: { reasoning: 'client' } })
  await loop(it, 2, withoutReasoning)
  expect(it.record.replies[1]!.restart).toBe('reasoning_stripped')
})

test('§18.47 a wholly rendered prompt that starts with the tokens before it goes on from them', async () => {
  const it = bench(['⟦look {}⟧'], { renderer: byteRenderer({ refuses: true }) })
  await loop(it, 4)
  expect(it.record.replies.map(({ restart }) => restart)).toEqual(Array(4).fill(undefined))
})

test.each([
  ['in a loop of tools', '⟦look {}⟧', [toolResult('c', 'seen')]],
  ['in a loop of tools, with reasoning', '‹hm›⟦look {}⟧', [toolResult('c', 'seen')]],
  ['at a new turn', 'one', [user('on')]],
])(
  '§18.47 a wholly rendered prompt that does not is a fork by the template: %s',
  async (_, said, next) => {
    const odd = [mark.pair, ...reply(said)]
    const { chat, record } = bench([{ ids: odd }], { renderer: byteRenderer({ refuses: true }) })
    const { choices } = await chat([user('go')])
    const [call] = choices[0]!.message.tool_calls ?? []
    const answers = next.map((message) =>
      call === undefined ? message : { ...message, tool_call_id: call.id },
    )
    await chat([user('go'), choices[0]!.message, ...answers])
    expect(record.replies[1]!.restart).toBe('template_rewrite')
  },
)

test('§18.47 a template that rewrites what came before a reply is a fork, though the reply stands where it stood', async () => {
  const inner = byteRenderer({ refuses: true })
  const counting: Renderer = {
    ...inner,
    prompt: ({ messages, ...more }) =>
      inner.prompt({
        ...more,
        messages: [{ role: 'system', content: `${messages.length}` }, ...messages],
      }),
  }
  const { chat, record, sampler } = bench(['one', 'two'], { renderer: counting })
  await chat([user('go')])
  await chat([user('go'), { role: 'assistant', content: 'one' }, user('on')])
  expect(record.replies[1]!.restart).toBe('template_rewrite')
  expect(sampler.seen.map(({ prompt }) => text(prompt))).toEqual(['1go', '3gooneon'])
})

test('F56 reasoning that a client leaves out stays in a wholly rendered prompt too', async () => {
  const it = bench(['‹hm›⟦look {}⟧'], { renderer: byteRenderer({ refuses: true }) })
  await loop(it, 3, withoutReasoning)
  expect(it.record.replies.map(({ restart }) => restart)).toEqual(Array(3).fill(undefined))
})

test('F56 histories that differ in reasoning that was never sampled are told apart', async () => {
  const { chat, sampler } = bench(['x'])
  const thoughts = ['first thought', 'second thought']
  for (const reasoning of thoughts)
    await chat([user('go'), { role: 'assistant', content: 'so', reasoning }, user('on')])
  expect(sampler.seen.map(({ prompt }) => text(prompt))).toEqual(
    thoughts.map((thought) => expect.stringContaining(thought) as string),
  )
})

test('a conversation that the renderer can’t show is refused, and the attempt goes on', async () => {
  const inner = byteRenderer()
  const picky: Renderer = {
    ...inner,
    prompt(conversation) {
      if (conversation.messages[0]!.role !== 'tool') return inner.prompt(conversation)
      throw new ConfigError('byte', [{ at: 'messages', message: 'begin with a user' }])
    },
  }
  const { chat, attempt } = bench(['x'], { renderer: picky })
  const { error } = await chat([toolResult('c', 'seen')])
  expect(error).toMatchObject({ code: 'invalid_request', param: 'messages' })
  expect(error!.message).toContain('begin with a user')
  expect((await chat([user('go')])).status).toBe(200)
  expect(attempt.failure).toBeUndefined()
})

test('markup that names no call is text, and recorded as such', async () => {
  const { chat, attempt } = bench(['⟦{"x": 1}⟧'])
  const { choices } = await chat([user('go')])
  expect(choices[0]!.message.content).toBe('⟦{"x": 1}⟧')
  expect(attempt.calls[0]!.samples[0]!.parse).toBe('parse_failed')
})

test('§18.61 F53 a history replaced by a summary starts anew, and each sampled id is in one reply', async () => {
  const { chat, record } = bench(['one', 'two', 'three', 'four', 'five'])
  const messages: object[] = [system('s'), user('1')]
  for (const word of ['one', 'two', 'three']) {
    await chat(messages)
    messages.push({ role: 'assistant', content: word }, user('next'))
  }
  const compact: object[] = [system('s'), user('so far: one two three')]
  await chat(compact)
  await chat([...compact, { role: 'assistant', content: 'four' }, user('on')])
  expect(record.replies.map(({ restart }) => restart)).toEqual([
    undefined,
    undefined,
    undefined,
    'new_conversation',
    undefined,
  ])
  expect(record.replies.map(({ sample }) => text(sample.ids))).toEqual([
    'one',
    'two',
    'three',
    'four',
    'five',
  ])
})

test('§18.54 twenty conversations at once have the same prompts as one after another', async () => {
  expect(await playAgents(true)).toEqual(await playAgents(false))
})

test('§18.55 who reads the end of a reply finds it in the graph at once', async () => {
  const it = bench(['one', 'two'])
  const response = await it.post('/chat/completions', { messages: [user('go')], stream: true })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  for (let seen = ''; !seen.includes('"finish_reason":"stop"');) {
    const { value } = await reader.read()
    seen += decoder.decode(value, { stream: true })
  }
  await it.chat([user('go'), { role: 'assistant', content: 'one' }, user('on')])
  expect(it.record.replies[1]!.restart).toBeUndefined()
  await reader.cancel()
})

test('§18.62 §18.60 two samples of one prompt are both kept; the one that is continued goes on', async () => {
  const { chat, record } = bench(['one', 'two', 'three', 'four'])
  await chat([user('go')])
  await chat([user('go')])
  await chat([user('go'), { role: 'assistant', content: 'two' }, user('on')])
  await chat([user('go'), { role: 'assistant', content: 'two' }, user('off')])
  expect(record.replies.map(({ restart }) => restart)).toEqual([
    undefined,
    'sibling',
    undefined,
    'branch',
  ])
  expect(record.replies.every(({ trained }) => trained)).toBe(true)
})

test('of two samples with one text the newer one is gone on from', async () => {
  const ids = [reply('ab'), [mark.pair, mark.end]]
  const { chat, sampler } = bench(ids.map((it) => ({ ids: it })))
  await chat([user('go')])
  await chat([user('go')])
  await chat([user('go'), { role: 'assistant', content: 'ab' }, user('on')])
  const [, second, third] = sampler.seen
  expect(startsWith(third!.prompt, [...second!.prompt, ...ids[1]!])).toBe(true)
})

test('a prompt whose first try failed is no sibling, and keeps its cause and its place', async () => {
  let samples = 0
  const sampler = byteSampler(['one', 'two', 'three'], {
    before: async () => {
      samples += 1
      if (samples === 1 || samples === 3) throw new Error('overheated')
    },
  })
  const { chat, record } = bench([], { sampler, gateway: { samplerRetries: 0 } })
  const turns = [[user('go')], [user('go'), { role: 'assistant', content: 'edited' }, user('on')]]
  for (const messages of turns) {
    expect((await chat(messages)).status).toBe(502)
    expect((await chat(messages)).status).toBe(200)
  }
  expect(record.replies.map(({ restart }) => restart)).toEqual([undefined, 'edited_text'])
  expect(record.log).toEqual(['conversation 1', 'reply', 'conversation 3', 'reply'])
})

test('§18.63 purposes and agents that are filtered are context only, and stay in the record', async () => {
  const { chat, record, attempt } = bench(['x'], { attempt: { trains: noCritic } })
  await chat([user('1')])
  await chat([user('2')], {}, { headers: { 'x-tiltyard-purpose': 'title' } })
  await chat([user('3')], { model: 'policy#critic' })
  expect(record.replies.map(({ trained }) => trained)).toEqual([true, false, false])
  expect(attempt.calls[1]!.samples[0]!.untrained).toBe('filtered')
})

test('§18.63 a filter sees what each reply is', async () => {
  const { chat, record, attempt } = bench(['⟦look {}⟧', 'well', 'no'], {
    attempt: { trains: ({ finish, sequence }) => finish === 'tool_calls' || sequence === 2 },
  })
  await chat([user('1')])
  await chat([user('2')])
  await chat([user('3')])
  expect(record.replies.map(({ trained }) => trained)).toEqual([true, false, true])
  expect(attempt.calls[1]!.samples[0]!.untrained).toBe('filtered')
})

test('§18.65 a sample without log-probabilities is not trained, and its siblings are', async () => {
  let calls = 0
  const sampler = byteSampler(['x'], {
    logprobs: (ids) => new Float32Array(ids.length).fill(calls++ === 0 ? Number.NaN : -1),
  })
  const { chat, record } = bench([], { sampler })
  await chat([user('go')], { n: 2 })
  expect(record.replies.map(({ trained }) => trained)).toEqual([false, true])
})

test('§18.75 calls for a judge are never trained', async () => {
  const { chat, record } = bench(['x'])
  await chat([user('rate it')], {}, { headers: { 'x-tiltyard-purpose': 'judge' } })
  expect(record.replies[0]!.trained).toBe(false)
  const all = bench(['x'], { attempt: { trains: () => true } })
  await all.chat([user('rate it')], {}, { headers: { 'x-tiltyard-purpose': 'judge' } })
  expect(all.record.replies[0]!.trained).toBe(false)
})

test('seeds and ids of calls depend on what was said, not on what came first', async () => {
  expect(await playInOrder([1, 2, 3])).toEqual(await playInOrder([3, 1, 2]))
})

async function playTwoTurns(strips: boolean): Promise<readonly PlayedReply[]> {
  const { chat, record } = bench(['‹hm›one', 'two'], { renderer: byteRenderer({ strips }) })
  await chat([user('go')])
  await chat([user('go'), { role: 'assistant', content: 'one' }, user('on')])
  return record.replies
}

async function playAgents(parallel: boolean): Promise<readonly string[]> {
  const it = bench((_, prompt) => `re ${text(prompt).length}`)
  const agent = async (index: number) => {
    const start = [system(`agent ${index}`), user('go')]
    const { choices } = await it.chat(start)
    await it.chat([...start, choices[0]!.message, user('more')])
  }
  if (parallel) await Promise.all(Array.from({ length: 10 }, (_, index) => agent(index)))
  else for (let index = 0; index < 10; index += 1) await agent(index)
  return it.record.replies.map((played) => whole(played).join()).toSorted()
}

async function playInOrder(order: readonly number[]): Promise<object> {
  const it = bench(['⟦look {}⟧'], { attempt: { seed: 3 } })
  const found: Record<number, string> = {}
  for (const index of order) {
    const { choices } = await it.chat([user(`task ${index}`)])
    found[index] =
      `${choices[0]!.message.tool_calls![0]!.id} ${it.sampler.seen.at(-1)!.request.seeds![0]}`
  }
  return found
}

function noCritic({ agent, purpose }: { agent?: string; purpose?: string }): boolean {
  return purpose === undefined && agent !== 'critic'
}
