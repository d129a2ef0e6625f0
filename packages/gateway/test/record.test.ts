import type { Message, PlayedCall, PlayRecorder } from '@tiltyard/core'
import { simulatedClock } from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { deferred } from '../src/waiting.ts'
import { bench, chatTools, recorded, system, toolResult, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'
import { settle } from './support/settle.ts'

test('what was said since a reply is told after that reply only; another conversation between them is begun anew', async () => {
  const { chat, record } = bench(['one', 'two', 'three', 'four'])
  const answer = (content: string) => ({ role: 'assistant', content })
  const main = [system('main'), user('go'), answer('one'), user('on')]
  await chat(main.slice(0, 2))
  await chat([system('other'), user('go')])
  await chat(main)
  await chat([...main, answer('three'), user('and on')])
  expect(record.log).toEqual([
    'conversation 2',
    'reply',
    'conversation 2',
    'reply',
    'conversation 4',
    'reply',
    'observation 1 0',
    'reply',
  ])
})

test('calls of tools are told with their arguments, their answer, and the time from reply to answer', async () => {
  const clock = simulatedClock()
  const told: { added: readonly Message[]; calls: readonly PlayedCall[] }[] = []
  const record: PlayRecorder = {
    ...recorded(),
    observation: async (added, calls) => void told.push({ added, calls }),
  }
  const { chat } = bench(['⟦look {"at": 1}⟧', '⟦look {"at": ⟧', 'done'], {
    gateway: { clock },
    attempt: { record },
  })
  const messages: object[] = [user('go')]
  for (const result of ['here', 'there', '']) {
    await clock.advance(10_000)
    const { choices } = await chat(messages, { tools: chatTools('look') })
    const said = choices[0]!.message
    messages.push(said)
    for (const { id } of said.tool_calls ?? []) messages.push(toolResult(id, result))
  }
  const id = expect.any(String) as string
  expect(told.map(({ calls }) => calls)).toEqual([
    [{ id, name: 'look', arguments: { at: 1 }, result: 'here', ms: 10_000 }],
    [{ id, name: 'look', arguments: '{"at":', result: 'there', ms: 10_000 }],
  ])
  expect(told.map(({ added }) => added.length)).toEqual([1, 1])
})

test('replies of calls at once are recorded one after the other, each with its conversation', async () => {
  const held = deferred<void>()
  const log: string[] = []
  const record: PlayRecorder = {
    ...recorded(),
    async conversation(messages) {
      log.push(`begin ${messages[0]!.content as string}`)
      await held.promise
    },
    async reply() {
      await new Promise(setImmediate)
      log.push('reply')
    },
  }
  const { chat } = bench(['x'], { attempt: { record } })
  const both = [chat([user('one')]), chat([user('two')])]
  await settle()
  expect(log).toEqual(['begin one'])
  held.resolve()
  await Promise.all(both)
  expect(log).toEqual(['begin one', 'reply', 'begin two', 'reply'])
})

test('an attempt has closed only when what was being recorded is', async () => {
  const held = deferred<void>()
  const log: string[] = []
  const record: PlayRecorder = {
    ...recorded(),
    async reply() {
      log.push('begun')
      await held.promise
      log.push('written')
    },
  }
  const { chat, attempt } = bench(['x'], { attempt: { record } })
  const asked = chat([user('go')])
  await expect.poll(() => log).toEqual(['begun'])
  const closed = attempt.close().then(() => log.push('closed'))
  await settle()
  expect(log).toEqual(['begun'])
  held.resolve()
  await Promise.all([closed, asked])
  expect(log).toEqual(['begun', 'written', 'closed'])
})

test('§18.80 a whole reply that waits for its client when the attempt ends is not recorded', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['whole'], { before: () => held.promise })
  const { post, attempt, record } = bench([], { sampler })
  const gone = new AbortController()
  const asked = post('/chat/completions', { messages: [user('go')] }, { signal: gone.signal })
  await expect.poll(() => sampler.seen.length).toBe(1)
  gone.abort()
  await expect(asked).rejects.toThrow('aborted')
  held.resolve()
  await settle()
  await attempt.close()
  await settle()
  expect(attempt.calls[0]!.status).toBe('cancelled')
  expect(record.log).toEqual([])
})
