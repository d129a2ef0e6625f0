import { type Bundle, type Chat, type ChatMessage, expectScore, playTask } from '@tiltyard/bundle'
import type { AssistantMessage } from '@tiltyard/core'
import { beforeAll, expect, test } from 'vitest'

import { describeWith } from '../../../test/support/machine.ts'
import { loadRetail, retailData } from './support/data.ts'

/** A chat that says what it is given, in turn, and keeps what it was told. */
function sayingChat(...replies: readonly string[]) {
  const told: (readonly ChatMessage[])[] = []
  const chat: Chat = {
    name: 'saying',
    reply: (messages) => {
      told.push(messages)
      return Promise.resolve(replies[told.length - 1]!)
    },
  }
  return { chat, told }
}

describeWith(retailData, 'retail by conversation', (data) => {
  let bundle: Bundle
  beforeAll(async () => {
    bundle = await loadRetail(data)
  })

  const player = (replies: readonly AssistantMessage[]) => {
    let next = 0
    return () => {
      next += 1
      return replies[next - 1]
    }
  }

  test('a model plays the customer: it sees its scenario and what is said, and no calls', async () => {
    const { chat, told } = sayingChat('Hi, I am Yusuf Rossi.', 'Yes please.', '###STOP###')
    const lookup = {
      id: 'c',
      name: 'find_user_id_by_name_zip',
      arguments: { first_name: 'Yusuf', last_name: 'Rossi', zip: '19122' },
    }
    const { conversation } = await playTask(
      bundle,
      '0',
      player([
        { role: 'assistant', content: '', toolCalls: [lookup] },
        { role: 'assistant', content: 'Hello Yusuf. Shall I?' },
        { role: 'assistant', content: 'Done.' },
      ]),
      { chats: { customer: chat } },
    )
    expect(conversation.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
    ])
    const [system, ...seen] = told[2]!
    expect(system!.content).toContain('Known info: You are Yusuf Rossi in zip code 19122.')
    expect(seen).toEqual([
      { role: 'user', content: 'Hi! How can I help you today?' },
      { role: 'assistant', content: 'Hi, I am Yusuf Rossi.' },
      { role: 'user', content: 'Hello Yusuf. Shall I?' },
      { role: 'assistant', content: 'Yes please.' },
      { role: 'user', content: 'Done.' },
    ])
    expect(JSON.stringify(bundle.tasks.get('0').gold)).not.toContain(told[0]![0]!.content)
  })

  test('a customer that can’t be reached fails the episode; it is no zero', async () => {
    const chat: Chat = { name: 'gone', reply: () => Promise.reject(new Error('unreachable')) }
    await expect(playTask(bundle, '0', player([]), { chats: { customer: chat } })).rejects.toThrow(
      'unreachable',
    )
  })

  test('a model judges what the store doesn’t show; too few results are a failure, no pass', async () => {
    const task = bundle.tasks.ids.find(
      (id) => (bundle.tasks.get(id).expect!['assertions'] as readonly string[]).length === 1,
    )!
    const judge = (answer: string) => ({ chats: { judge: sayingChat(answer).chat } })
    const met = (value: boolean) =>
      `{"results": [{"expected": "", "reason": "So.", "met": ${value}}]}`
    await expectScore(bundle, task, ['Hello.'], { assertions: 1 }, judge(met(true)))
    await expectScore(bundle, task, ['Hello.'], { assertions: 0 }, judge(met(false)))
    await expectScore(bundle, task, ['Hello.'], { assertions: 'unscored' })
    await expect(
      expectScore(bundle, task, ['Hello.'], { assertions: 1 }, judge('{"results": []}')),
    ).rejects.toMatchObject({ code: 'VERIFIER' })
    await expectScore(bundle, '0', ['Hello.'], { assertions: 1 })
  })
})
