import type { EpisodeEvent, ImagePart, RunEvent, RunWriter } from '@tiltyard/core'
import {
  charRenderer,
  charText,
  charTools,
  memoryRunIndex,
  scriptedSampler,
} from '@tiltyard/testkit'
import { expect, test } from 'vitest'

import { episodeSeed, replySeed } from '../src/index.ts'
import { playOne } from './support/play.ts'
import { firstKey, recorded, runRecord } from './support/recorded.ts'

const key = firstKey

test('an episode is recorded with what was said, done, sampled and scored', async () => {
  const index = await recorded(
    1,
    {
      observation: {
        messages: [{ role: 'user', content: 'How many?' }],
        tools: charTools('count'),
      },
      step(reply) {
        const [call] = reply.toolCalls ?? []
        if (call === undefined) return { done: true }
        return {
          done: false,
          messages: [{ role: 'tool', toolCallId: call.id, name: 'count', content: '4' }],
          calls: [{ id: call.id, name: 'count', arguments: { of: 'legs' }, result: '4', ms: 2 }],
        }
      },
    },
    { replies: ['⟦count {"of": "legs"}⟧', 'Four.'] },
  )
  const { episode, score, failures } = await index.episode('run', key)
  expect(episode).toMatchObject({
    task: 'task',
    fingerprint: 'fingerprint of task',
    seed: 1,
    startedAt: 1_000_000,
    end: { kind: 'completed' },
    messages: [
      { role: 'user', content: 'How many?' },
      {
        role: 'assistant',
        content: '',
        reply: 0,
        toolCalls: [
          {
            id: 'call_0',
            name: 'count',
            arguments: { of: 'legs' },
            rawArguments: '{"of": "legs"}',
          },
        ],
      },
      { role: 'tool', toolCallId: 'call_0', name: 'count', content: '4' },
      { role: 'assistant', content: 'Four.', reply: 1 },
    ],
    tools: charTools('count'),
    calls: [{ id: 'call_0', name: 'count', arguments: { of: 'legs' }, result: '4', ms: 2 }],
  })
  const [sequence] = episode!.sequences
  const texts = episode!.replies.map(({ start, length }) =>
    charText(sequence!.ids.slice(start, start + length)),
  )
  expect(texts).toEqual(['⟦count {"of": "legs"}⟧⟨end⟩', 'Four.⟨end⟩'])
  for (const { start, length } of episode!.replies) {
    expect(sequence!.mask.slice(start, start + length).every((mark) => mark === 1)).toBe(true)
    expect(sequence!.logprobs.slice(start, start + length).every((value) => value === -1)).toBe(
      true,
    )
    expect(sequence!.mask[start - 1]).toBe(0)
  }
  const seed = episodeSeed(11, key)
  expect(episode!.replies.map((reply) => reply.seed)).toEqual([
    replySeed(seed, 0),
    replySeed(seed, 1),
  ])
  expect(score).toMatchObject({ scores: { score: { value: 1 } }, reward: { reward: 1 } })
  expect(failures).toEqual([])
})

test('F24: an episode is recorded with the instance that was played, one that failed too', async () => {
  let plays = 0
  const index = await recorded(1, {
    instance: 'order 7731',
    step() {
      plays += 1
      if (plays === 1) throw new Error('again')
      return { done: true }
    },
  })
  for (const attempt of [0, 1]) {
    const { episode } = await index.episode('run', { ...key, attempt })
    expect(episode?.instance).toBe('order 7731')
  }
})

test('F37: each reply is recorded with what it was sampled with', async () => {
  const sampling = { temperature: 0.7, topK: 5, topP: 0.9 }
  const policy = {
    sampler: scriptedSampler(['⟦look {}⟧', 'done']),
    renderer: charRenderer(),
    sampling,
  }
  const index = await recorded(1, {}, { policy })
  const { episode } = await index.episode('run', key)
  expect(episode?.replies).toMatchObject([sampling, sampling])
})

test('E17: a reply is in the record before any of its calls runs', async () => {
  const index = memoryRunIndex()
  const writer = await index.claim(runRecord, { expect: 'new' })
  let taken = false
  const slow: RunWriter = {
    ...writer,
    async append(event) {
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
      await writer.append(event)
      taken = true
    },
  }
  let seen: unknown
  await playOne(
    {
      step() {
        expect(taken).toBe(true)
        seen ??= index.events('run').at(-1)
        return { done: true }
      },
    },
    { writer: slow, replies: ['so ⟦look {"a": 1}⟧'] },
  )
  expect(seen).toMatchObject({
    type: 'call',
    key,
    task: 'task',
    reply: 1,
    messages: [
      { role: 'user', content: 'Go.' },
      { role: 'assistant', content: 'so ', toolCalls: [{ name: 'look' }] },
    ],
  })
})

test('a changed head is recorded once more, what was said before it is not', async () => {
  const index = await recorded(
    1,
    {
      observation: {
        messages: [
          { role: 'system', content: 'Sell.' },
          { role: 'user', content: 'Hi' },
        ],
        tools: charTools('sell'),
      },
      step: (_, __, count) =>
        count === 1
          ? { done: true }
          : {
              done: false,
              messages: [{ role: 'user', content: 'Help!' }],
              turn: { system: { role: 'system', content: 'Help.' }, tools: charTools('help') },
            },
    },
    { replies: ['one', 'two'] },
  )
  const { episode } = await index.episode('run', key)
  expect(episode?.messages.map(({ role, content }) => [role, content])).toEqual([
    ['system', 'Sell.'],
    ['user', 'Hi'],
    ['assistant', 'one'],
    ['user', 'Help!'],
    ['system', 'Help.'],
    ['assistant', 'two'],
  ])
  expect(episode?.tools.map(({ name }) => name)).toEqual(['sell', 'help'])
  expect(episode?.sequences).toHaveLength(2)
  expect(episode?.replies.map(({ sequence, restart }) => [sequence, restart])).toEqual([
    [0, undefined],
    [1, 'the system prompt and tools changed'],
  ])
})

test('a head that was there before is recorded again when it comes back', async () => {
  const heads = ['Sell.', 'Help.', 'Help.', 'Sell.']
  const index = await recorded(
    1,
    {
      observation: {
        messages: [
          { role: 'system', content: heads[0]! },
          { role: 'user', content: '0' },
        ],
      },
      step: (_, __, count) =>
        count + 1 === heads.length
          ? { done: true }
          : {
              done: false,
              messages: [{ role: 'user', content: String(count + 1) }],
              turn: { system: { role: 'system', content: heads[count + 1]! } },
            },
    },
    { replies: ['ok'] },
  )
  const { episode } = await index.episode('run', key)
  const said = episode?.messages.filter(({ role }) => role !== 'assistant')
  expect(said?.map(({ content }) => content)).toEqual([
    'Sell.',
    '0',
    '1',
    'Help.',
    '2',
    '3',
    'Sell.',
  ])
})

test('images are recorded by their size, and stand as −1 among the ids', async () => {
  const image: ImagePart = {
    type: 'image',
    format: 'png',
    data: new Uint8Array(10),
    width: 4,
    height: 5,
  }
  const index = await recorded(
    1,
    { observation: { messages: [{ role: 'user', content: [image] }] } },
    { renderer: charRenderer({ imageTokens: 2 }) },
  )
  const { episode } = await index.episode('run', key)
  expect(episode?.messages[0]).toEqual({
    role: 'user',
    content: [{ type: 'image', format: 'png', width: 4, height: 5, bytes: 10 }],
  })
  expect(Array.from(episode!.sequences[0]!.ids.slice(1, 3))).toEqual([-1, -1])
})

test('E36, E39: nothing that was said or done is in the log, however talkative', async () => {
  const marks = ['PROMPT-MARK', 'REPLY-MARK', 'ARGUMENT-MARK', 'RESULT-MARK']
  const lines: string[] = []
  const line = (message: string, fields?: object) =>
    void lines.push(message + JSON.stringify(fields ?? {}))
  const logger = { debug: line, info: line, warn: line, error: line }
  let plays = 0
  await playOne(
    {
      observation: { messages: [{ role: 'user', content: marks[0]! }] },
      step(reply) {
        plays += 1
        if (plays === 2) throw new Error(`it broke on ${marks[3]}`)
        const [call] = reply.toolCalls ?? []
        if (call === undefined) return { done: true }
        return {
          done: false,
          messages: [{ role: 'tool', toolCallId: call.id, content: marks[3]! }],
        }
      },
    },
    { logger, replies: [`${marks[1]} ⟦look {"a": "${marks[2]}"}⟧`, 'more', 'done'] },
  )
  expect(lines).not.toEqual([])
  for (const mark of marks) expect(lines.join('\n')).not.toContain(mark)
})

test('the same seed plays and records the same', async () => {
  const events: (readonly RunEvent[])[] = []
  for (const _ of ['once', 'again']) {
    const index = await recorded(3, {}, { replies: ['⟦a {}⟧', 'done'], slotCount: 1 })
    events.push(index.events('run'))
  }
  expect(events[0]).toEqual(events[1])
})

test('the tokens of a masked reply are in the record and marked as context', async () => {
  const index = await recorded(
    1,
    {},
    { replies: ['⟦ {}⟧', 'done'], malformed: { onMalformed: { tell: 1 }, train: false } },
  )
  const episode = (await index.episode('run', key)).episode as EpisodeEvent
  const [sequence] = episode.sequences
  const [bad, good] = episode.replies
  const marks = (reply: typeof bad) =>
    new Set(sequence!.mask.slice(reply!.start, reply!.start + reply!.length))
  expect(marks(bad)).toEqual(new Set([0]))
  expect(marks(good)).toEqual(new Set([1]))
  expect(bad?.malformed).toEqual([{ error: 'missing_name', raw: ' {}' }])
})
