import { expect, test } from 'vitest'

import { deferred } from '../src/waiting.ts'
import { bench, chatTools, toolResult, user } from './support/harness.ts'
import { byteSampler } from './support/sampler.ts'

const answer = { role: 'assistant', content: 'hi' }

test('§18.82 a prompt that fills the window leaves no token to sample; one less leaves one', async () => {
  const full = bench(['hi'])
  await full.chat([user('go')])
  const length = full.sampler.seen[0]!.prompt.length
  const windows = [length, length + 1].map((contextWindow) =>
    bench([], { sampler: byteSampler(['hi'], { contextWindow }) }),
  )
  const [none, one] = await Promise.all(windows.map(({ chat }) => chat([user('go')])))
  expect(none!.error?.code).toBe('context_length_exceeded')
  expect(windows[0]!.sampler.seen).toEqual([])
  expect(one!.choices[0]!.finish_reason).toBe('length')
  expect(windows[1]!.sampler.seen.map(({ request }) => request.maxTokens)).toEqual([1])
})

test('§18.82 the run’s own window counts where it is smaller', async () => {
  const { chat, attempt } = bench(['hi'], { attempt: { limits: { contextWindow: 12 } } })
  expect((await chat([user('far too long for it')])).error?.code).toBe('context_length_exceeded')
  expect(attempt.cut).toBe('context_window')
  expect((await chat([user('ok')])).status).toBe(200)
  expect(attempt.cut).toBeUndefined()
})

test('§18.83 replies under way count against the limit of replies', async () => {
  const held = deferred<void>()
  const sampler = byteSampler(['hi'], { before: () => held.promise })
  const { chat, attempt, record } = bench([], { sampler, attempt: { limits: { replies: 2 } } })
  const first = chat([user('one')])
  await expect.poll(() => sampler.seen.length).toBe(1)
  expect((await chat([user('two')], { n: 2 })).error?.code).toBe('rollout_budget_exceeded')
  const second = chat([user('two')])
  await expect.poll(() => sampler.seen.length).toBe(2)
  expect((await chat([user('three')])).error?.code).toBe('rollout_budget_exceeded')
  expect(attempt.cut).toBe('replies')
  held.resolve()
  expect([(await first).status, (await second).status]).toEqual([200, 200])
  expect(record.replies).toHaveLength(2)
})

test('§18.83 what is left of the sampled tokens is shared by the replies of a call', async () => {
  const { chat, sampler } = bench(['hi'], { attempt: { limits: { sampledTokens: 11 } } })
  await chat([user('go')], { n: 2 })
  await chat([user('on')], { n: 2 })
  expect(sampler.seen.map(({ request }) => request.maxTokens)).toEqual([5, 2])
})

test('§18.83 a conversation that reached its length in tokens gets no reply, and before that a shorter one', async () => {
  const probe = bench(['hi'])
  await probe.chat([user('go')])
  const start = probe.sampler.seen[0]!.prompt.length
  const episodeTokens = start + 2
  const { chat, sampler, attempt } = bench(['hi'], { attempt: { limits: { episodeTokens } } })
  await chat([user('go')])
  expect(sampler.seen[0]!.request.maxTokens).toBe(2)
  const refused = await chat([user('go'), answer, user('on')])
  expect(refused.error?.code).toBe('rollout_budget_exceeded')
  expect(attempt.cut).toBe('episode_tokens')
})

test('§18.83 turns are counted by the user’s messages', async () => {
  const { chat, attempt } = bench(['hi'], { attempt: { limits: { turns: 2 } } })
  const messages: object[] = [user('1')]
  const statuses: number[] = []
  for (const next of ['2', '3', '4']) {
    const { status } = await chat(messages)
    statuses.push(status)
    messages.push(answer, user(next))
  }
  expect(statuses).toEqual([200, 200, 400])
  expect(attempt.cut).toBe('turns')
})

test('§18.83 the answer to one call of a tool more than allowed gets no reply', async () => {
  const { chat, attempt } = bench(['⟦look {}⟧'], { attempt: { limits: { toolCalls: 2 } } })
  const messages: object[] = [user('go')]
  const statuses: number[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const { status, choices } = await chat(messages, { tools: chatTools('look') })
    statuses.push(status)
    const said = choices?.[0]?.message
    if (said === undefined) break
    messages.push(said, toolResult(said.tool_calls![0]!.id, 'seen'))
  }
  expect(statuses).toEqual([200, 200, 200, 400])
  expect(attempt.cut).toBe('tool_calls')
})
