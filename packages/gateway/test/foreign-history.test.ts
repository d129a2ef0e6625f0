import { expect, test } from 'vitest'

import { text } from './support/byte-renderer.ts'
import { bench, chatTools, toolResult, user } from './support/harness.ts'

/** A history that the gateway never gave, with a call whose arguments are spelled so. */
const history = (args: unknown) => [
  user('Where?'),
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'call_elsewhere', type: 'function', function: { name: 'look', arguments: args } },
    ],
  },
  toolResult('call_elsewhere', 'seen'),
  user('And now?'),
]

test('F6 arguments of a foreign history stand the same in the prompt, as text of any spacing and as an object', async () => {
  const { chat, sampler } = bench(['done'])
  for (const args of ['{"city":"Oslo"}', '{ "city" : "Oslo" }', { city: 'Oslo' }]) {
    const { status } = await chat(history(args), { tools: chatTools('look') })
    expect(status).toBe(200)
  }
  const [first, ...others] = sampler.seen.map(({ prompt }) => text(prompt))
  expect(first).toContain('Oslo')
  expect(others).toEqual([first, first])
})

test.each(['{"city": "Os', '["Oslo"]', '3'])(
  'F6 arguments that are no JSON object, %j, harm no other call',
  async (args) => {
    const { chat, sampler } = bench(['done'])
    const answers = await Promise.all([
      chat(history(args), { tools: chatTools('look') }),
      chat(history('{"city":"Oslo"}'), { tools: chatTools('look') }),
    ])
    expect(answers.map(({ status, error }) => error?.code ?? status)).toEqual([200, 200])
    expect(sampler.seen.map(({ prompt }) => text(prompt).includes(args))).toContain(true)
  },
)
