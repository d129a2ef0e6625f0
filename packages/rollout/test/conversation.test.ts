import { type Message, type Renderer, type Step, type UserMessage } from '@tiltyard/core'
import {
  answerCalls,
  charIds,
  charMarkers,
  charRenderer,
  charText,
  charTools,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { sequenceIds, sequencesOf } from '../src/index.ts'
import { play, playOne, promptText, withTool } from './support/play.ts'

const user = (content: string): UserMessage => ({ role: 'user', content })
const system = (content: string): Message => ({ role: 'system', content })

describe('a conversation', () => {
  test('goes on with exactly the sampled ids, then what followed', async () => {
    const sampler = scriptedSampler(['I look. ⟦look {"a": 1}⟧', 'It is 4.'])
    const { episode } = await playOne({ observation: withTool(10) }, { sampler })
    const [first, second] = sampler.requests.map(promptText)
    expect(second).toBe(`${first}I look. ⟦look {"a": 1}⟧⟨end⟩⟨tool⟩ok⟨end⟩⟨assistant⟩`)
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(episode.replies.map(({ message }) => message.content)).toEqual(['I look. ', 'It is 4.'])
  })

  test('F1: ids that a tokenizer would join stay apart, in the next prompt and in the sequence', async () => {
    // Spelled with the replacement ids that no text would be encoded to.
    const ids = [
      ...charIds('Nor'),
      0x10_fff0,
      ...charIds('thgate'),
      charMarkers.callOpen,
      ...charIds('look {}'),
      charMarkers.callClose,
      charMarkers.end,
    ]
    const sampler = scriptedSampler([{ ids }, 'done'])
    const { episode } = await playOne({}, { sampler })
    const start = episode.replies[0]!.prompt.length
    const next = episode.replies[1]!.prompt.chunks()[0]
    expect(
      next?.type === 'tokens' && Array.from(next.ids.slice(start, start + ids.length)),
    ).toEqual(ids)
    const [sequence, ...more] = sequencesOf(episode.replies)
    expect(more).toEqual([])
    expect(Array.from(sequenceIds(sequence!).slice(start, start + ids.length))).toEqual(ids)
  })

  test('F4, F5: every sampled id is trained once, its stop token too, and nothing else', async () => {
    const texts = ['think, think ⟦look {}⟧', 'more thinking ⟦look {}⟧', 'the answer']
    const { episode } = await playOne({}, { replies: texts })
    const spans = sequencesOf(episode.replies).flatMap((sequence) =>
      sequence.spans.map(({ start, length }) =>
        charText(sequenceIds(sequence).slice(start, start + length)),
      ),
    )
    expect(spans).toEqual(texts.map((text) => `${text}⟨end⟩`))
    expect(episode.metrics['splits']).toBe(0)
  })

  test('F4: with a renderer that rewrites history each reply is still trained once, and the splits are told', async () => {
    const turns: readonly Step[] = [
      { done: false, messages: [user('second?')], turn: {} },
      { done: false, messages: [user('third?')], turn: {} },
      { done: true },
    ]
    const { episode } = await playOne(
      { step: (_, __, index) => turns[index]! },
      {
        replies: ['hm|one', 'hm|two', 'hm|three'],
        renderer: charRenderer({ rewritesHistory: true }),
      },
    )
    const sequences = sequencesOf(episode.replies)
    expect(sequences.map(({ split }) => split)).toEqual([
      undefined,
      'history is rewritten after a user message',
      'history is rewritten after a user message',
    ])
    const trained = sequences.flatMap(({ spans }) => spans.filter((span) => span.trained))
    expect(trained.map(({ reply }) => reply)).toEqual([0, 1, 2])
    expect(episode.metrics['splits']).toBe(2)
  })

  test('F7: an option of the renderer reaches what is sampled and what is trained', async () => {
    const renderer = charRenderer({ preamble: 'Be brief.' })
    const { episode } = await playOne({}, { renderer })
    const [sequence] = sequencesOf(episode.replies)
    expect(charText(sequenceIds(sequence!))).toBe(
      '⟨system⟩Be brief.⟨end⟩⟨user⟩Go.⟨end⟩⟨assistant⟩done⟨end⟩',
    )
  })

  test('calls have ids that are unique in the episode, and tools answer under them', async () => {
    const ids: string[] = []
    await playOne(
      {
        step(reply) {
          ids.push(...(reply.toolCalls ?? []).map(({ id }) => id))
          return answerCalls(reply)
        },
      },
      { replies: ['⟦a {}⟧⟦b {}⟧', '⟦c {}⟧', 'done'] },
    )
    expect(ids).toEqual(['call_0', 'call_1', 'call_2'])
  })

  test('F14: a call with arguments that are no object goes to the environment, and the episode goes on', async () => {
    const texts = ['⟦q "{}"⟧', '⟦q [1]⟧', '⟦q 3⟧', '⟦q {"q":⟧', '⟦q {"q": 1}⟧', 'done']
    const seen: unknown[] = []
    const { episode } = await playOne(
      {
        step(reply) {
          for (const call of reply.toolCalls ?? [])
            seen.push('error' in call ? call.rawArguments : call.arguments)
          return answerCalls(reply)
        },
      },
      { replies: texts },
    )
    expect(seen).toEqual(['"{}"', '[1]', '3', '{"q":', { q: 1 }])
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(episode.metrics['tool_calls']).toBe(1)
  })

  test('each reply has a seed of its own, the same again in the same place', async () => {
    const seeds: (number | undefined)[][] = []
    for (const _ of ['once', 'again']) {
      const sampler = scriptedSampler(['⟦a {}⟧', '⟦a {}⟧', 'done'])
      await play(
        scriptedPlan(2, () => scriptedEnv()),
        { sampler, slotCount: 1 },
      )
      seeds.push(sampler.requests.map((request) => request.seeds?.[0]))
    }
    expect(new Set(seeds[0]).size).toBe(4)
    expect(seeds[1]).toEqual(seeds[0])
  })

  test('an environment that leaves a call without an answer fails, naming the calls', async () => {
    const env = { step: (): Step => ({ done: false, messages: [user('hm')] }) }
    await expect(playOne(env, { replies: ['⟦a {}⟧'] })).rejects.toThrow(
      'the environment answered []; the reply calls [call_0]',
    )
  })

  test('an environment that goes on with nothing fails', async () => {
    const env = { step: (): Step => ({ done: false, messages: [] }) }
    await expect(playOne(env)).rejects.toThrow('gave no message to go on with')
  })
})

describe('turns', () => {
  test('E12: a turn with another system prompt is rendered with it, and the split is told', async () => {
    const sampler = scriptedSampler(['first', 'second'])
    const observation = { messages: [system('Sell.'), user('Hi')], tools: charTools('look') }
    const turns: readonly Step[] = [
      {
        done: false,
        messages: [user('And now?')],
        turn: { system: { role: 'system', content: 'Help.' } },
      },
      { done: true },
    ]
    const { episode } = await playOne(
      { observation, step: (_, __, index) => turns[index]! },
      { sampler },
    )
    expect(promptText(sampler.requests[1]!)).toContain(
      '⟨system⟩Help.⟨end⟩⟨user⟩Hi⟨end⟩⟨assistant⟩first⟨end⟩⟨user⟩And now?',
    )
    expect(promptText(sampler.requests[1]!)).not.toContain('Sell.')
    expect(episode.replies[1]?.restart).toBe('the system prompt changed')
    expect(sequencesOf(episode.replies)).toHaveLength(2)
    expect(episode.metrics['turns']).toBe(2)
  })

  test('E13, F9: a turn with other tools is rendered with them, and they type its calls', async () => {
    const sampler = scriptedSampler(['first', 'second'])
    const plain = charRenderer()
    const typing: string[][] = []
    const renderer: Renderer = {
      ...plain,
      parse(ids, context) {
        typing.push(context.tools.map(({ name }) => name))
        return plain.parse(ids, context)
      },
    }
    const turns: readonly Step[] = [
      { done: false, messages: [user('And now?')], turn: { tools: charTools('find') } },
      { done: true },
    ]
    const { episode } = await playOne(
      { observation: withTool(10), step: (_, __, index) => turns[index]! },
      { sampler, renderer },
    )
    expect(typing).toEqual([['look'], ['find']])
    expect(promptText(sampler.requests[1]!)).toContain('"find"')
    expect(promptText(sampler.requests[1]!)).not.toContain('"look"')
    expect(episode.replies[1]?.restart).toBe('the tools changed')
  })

  test('a turn whose head is equal to the one before extends', async () => {
    const observation = { messages: [system('Sell.'), user('Hi')], tools: charTools('look') }
    const head = { system: { role: 'system', content: 'Sell.' }, tools: charTools('look') } as const
    const turns: readonly Step[] = [
      { done: false, messages: [user('And now?')], turn: head },
      { done: true },
    ]
    const { episode } = await playOne({ observation, step: (_, __, index) => turns[index]! })
    expect(sequencesOf(episode.replies)).toHaveLength(1)
  })

  test('more turns than the limit cut the episode before the turn is shown', async () => {
    const sampler = scriptedSampler(['a', 'b', 'c'])
    const { episode } = await playOne(
      { step: () => ({ done: false, messages: [user('again')], turn: {} }) },
      { sampler, limits: { turns: 2 } },
    )
    expect(episode.end).toEqual({ kind: 'cut', by: 'turns' })
    expect(sampler.requests).toHaveLength(2)
  })

  test('more replies than the limit cut the episode after the last one was acted on', async () => {
    const { episode, env } = await playOne({}, { replies: ['⟦a {}⟧'], limits: { replies: 3 } })
    expect(episode.end).toEqual({ kind: 'cut', by: 'replies' })
    expect(env.replies).toHaveLength(3)
  })
})
