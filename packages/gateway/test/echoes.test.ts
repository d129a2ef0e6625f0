import { expect, test } from 'vitest'

import { reply } from './support/byte-renderer.ts'
import { bench, chatTools, toolResult, user, type WireMessage } from './support/harness.ts'
import { loop, withCalls, withoutReasoning } from './support/loop.ts'

const echoes: Readonly<Record<string, (message: WireMessage) => object>> = {
  'other order and spaces in the arguments': withCalls({ arguments: '{ "b": 2,\n "a": 1 }' }),
  'content empty': (message) => ({ ...message, content: '' }),
  'content absent': ({ content: _content, ...message }) => message,
  'reasoning left out': withoutReasoning,
  'fields of the client’s own': (message) => ({ ...message, token_ids: [1], refusal: null, x: {} }),
}

test.each(Object.keys(echoes))(
  '§18.41 §18.43 F56 each prompt goes on from the ids before it with %s',
  async (name) => {
    const it = bench(['‹hm›⟦look {"a": 1, "b": 2}⟧'])
    await loop(it, 3, echoes[name])
    expect(it.record.replies.map(({ restart }) => restart)).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(it.record.log.filter((line) => line.startsWith('conversation'))).toHaveLength(1)
  },
)

test.each([
  ['strict', '{"a": 1, "b": 2}', undefined],
  ['strict', '{"b": 2, "a": 1}', 'edited_args'],
  ['ids', '{"a": 1, "b": 2, "limit": 10}', undefined],
  ['canonical', '{"a": 1, "b": 2, "limit": 10}', 'edited_args'],
  ['canonical', '{}', 'edited_args'],
] as const)(
  '§18.41 §18.44 with echoTolerance: %s, arguments sent back as %s',
  async (echoTolerance, sent, cause) => {
    const it = bench(['⟦look {"a": 1, "b": 2}⟧'], { gateway: { echoTolerance } })
    await loop(it, 2, withCalls({ arguments: sent }))
    expect(it.record.replies[1]!.restart).toBe(cause)
  },
)

test('§18.30 arguments that are no JSON go out as they are, and each client’s way to echo them goes on from the same ids', async () => {
  for (const echo of ['{}', '{"at": ', JSON.stringify('{"at": ')]) {
    const it = bench([{ ids: reply('⟦look {"at": ⟧') }])
    const messages = await loop(it, 2, (message) => ({
      ...message,
      tool_calls: message.tool_calls!.map((call) => {
        expect(call.function.arguments).toBe('{"at":')
        return { ...call, function: { ...call.function, arguments: echo.replace(': ', ':') } }
      }),
    }))
    expect(messages).toHaveLength(6)
    expect(it.attempt.calls[0]!.samples[0]!.parse).toBe('args_invalid')
    expect(it.record.replies[1]!.restart).toBeUndefined()
  }
})

test.each([
  ['{"at": 1}', undefined],
  ['{"at":1,"to":"so"}', undefined],
  ['{}', undefined],
  ['{"at":2}', 'edited_args'],
  ['{"to":"so"}', 'edited_args'],
])(
  '§18.30 arguments that break off, sent back as %s, as far as they could be read',
  async (sent, cause) => {
    const it = bench([{ ids: reply('⟦look {"at": 1, "to": "so⟧') }])
    await loop(it, 2, withCalls({ arguments: sent }))
    expect(it.record.replies[1]!.restart).toBe(cause)
  },
)

test('§18.30 arguments that are not even the start of an object, sent back as an empty one, go on', async () => {
  const it = bench(['⟦look everywhere⟧'])
  await loop(it, 2, withCalls({ arguments: '{}' }))
  expect(it.record.replies[1]!.restart).toBeUndefined()
})

test.each([
  ['text, calls', [{ content: [{ type: 'text', text: 'Well.' }] }, { calls: true }]],
  ['reasoning, text, calls', [{ reasoning: 'hm' }, { content: 'Well.' }, { calls: true }]],
  ['reasoning, text with calls', [{ reasoning: 'hm' }, { content: 'Well.', calls: true }]],
  ['reasoning with text, calls', [{ reasoning: 'hm', content: 'Well.' }, { calls: true }]],
])('§18.41 a reply that a client sends back in parts (%s) is one', async (_, parts) => {
  const { chat, record } = bench(['‹hm›Well.⟦look {}⟧', 'done'])
  const { choices } = await chat([user('go')], { tools: chatTools('look') })
  const { tool_calls } = choices[0]!.message
  const echo = parts.map(({ content = null, calls = false, ...part }: Part) => ({
    role: 'assistant',
    content,
    ...part,
    ...(calls ? { tool_calls } : {}),
  }))
  const result = toolResult(tool_calls![0]!.id, 'seen')
  await chat([user('go'), ...echo, result], { tools: chatTools('look') })
  expect(record.replies[1]!.restart).toBeUndefined()
})

/** A message with a part of a reply. */
interface Part {
  readonly content?: unknown
  readonly reasoning?: string
  readonly calls?: boolean
}
