import {
  isRewarded,
  StateError,
  type Env,
  type ImagePart,
  type Message,
  type PlayContext,
  type Step,
  type UserMessage,
} from '@tiltyard/core'
import {
  answerCalls,
  charIds,
  charMarkers,
  charRenderer,
  charReply,
  charText,
  charTools,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import {
  envEpisode,
  IMAGE_PLACEHOLDER,
  MALFORMED_MESSAGE,
  playNeeds,
  replySeed,
  sequenceIds,
  sequencesOf,
} from '../src/index.ts'
import { answerOf, play, playOne, promptOf, withTool } from './support/play.ts'

const user = (content: string): UserMessage => ({ role: 'user', content })
const system = (content: string): Message => ({ role: 'system', content })
const promptText = (request: { prompt: Parameters<typeof sequencesOf>[0][number]['prompt'] }) =>
  request.prompt
    .chunks()
    .map((chunk) => (chunk.type === 'tokens' ? charText(chunk.ids) : '<image>'))
    .join('')

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

  test('E13: a turn with other tools is rendered with them, and they type its calls', async () => {
    const sampler = scriptedSampler(['first', 'second'])
    const turns: readonly Step[] = [
      { done: false, messages: [user('And now?')], turn: { tools: charTools('find') } },
      { done: true },
    ]
    const { episode } = await playOne(
      { observation: withTool(10), step: (_, __, index) => turns[index]! },
      { sampler },
    )
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

describe('a cut reply', () => {
  test('F13: of two calls, the second cut in its middle, none runs, and the end is cut, not malformed', async () => {
    const text = '⟦look {"a": 1}⟧⟦look {"b": 2'
    const { episode, env } = await playOne(
      {},
      { replies: [{ ids: charReply(text, false), stop: 'length' }], limits: { replyTokens: 40 } },
    )
    expect(episode.end).toEqual({ kind: 'cut', by: 'reply_tokens' })
    expect(env.replies).toEqual([])
    expect(episode.replies[0]).toMatchObject({ termination: 'length', trained: true })
    expect(episode.replies[0]?.sample.stop).toBe('length')
    expect(episode.metrics).toMatchObject({ tool_calls: 0, malformed_replies: 0, cut: 1 })
  })

  test.each([
    [{ replyTokens: 5 }, 'reply_tokens'],
    [{ episodeTokens: 15 }, 'episode_tokens'],
    [{ sampledTokens: 5 }, 'sampled_tokens'],
    [{ contextWindow: 15 }, 'context_window'],
    [{ replyTokens: 5, episodeTokens: 15 }, 'reply_tokens'],
  ] as const)('names the limit that was reached: %j', async (limits, by) => {
    const { episode } = await playOne(
      { observation: promptOf(10) },
      { replies: ['much too long'], limits },
    )
    expect(episode.end).toEqual({ kind: 'cut', by })
    expect(episode.replies[0]?.sample.ids).toHaveLength(5)
  })

  test('F72: a tool result that does not fit cuts the episode; nothing of the prompt is left out', async () => {
    const sampler = scriptedSampler(['⟦look {}⟧'], { contextWindow: 200 })
    const observation = {
      messages: [{ role: 'system', content: 's'.repeat(80) } as const, user('Hi')],
    }
    const { episode } = await playOne({ observation, step: answerOf(400) }, { sampler })
    expect(episode.end).toEqual({ kind: 'cut', by: 'context_window' })
    expect(sampler.requests).toHaveLength(1)
    expect(episode.outcome?.scores).toEqual({ score: { value: 1 } })
  })

  test('F27: a last reply that fills the context exactly is scored as usual', async () => {
    const sampler = scriptedSampler(['12345'], { contextWindow: 16 })
    const { episode } = await playOne({ observation: promptOf(10), score: () => 0.7 }, { sampler })
    expect(episode.replies[0]?.sample.ids).toHaveLength(6)
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(isRewarded(episode.reward) && episode.reward.reward).toBe(0.7)
  })
})

describe('a malformed reply', () => {
  const bad = 'so ⟦ {}⟧'

  test('ends the episode unless told otherwise, and is scored as it stands', async () => {
    const { episode, env } = await playOne({ score: () => 0.25 }, { replies: [bad] })
    expect(episode.end).toEqual({ kind: 'cut', by: 'malformed_reply' })
    expect(episode.reward).toEqual({ reward: 0.25 })
    expect(env.replies).toEqual([])
    expect(episode.replies[0]).toMatchObject({ malformed: [{ error: 'missing_name', raw: ' {}' }] })
  })

  test('is answered, and the conversation goes on from its very ids', async () => {
    const sampler = scriptedSampler([bad, 'done'])
    const { episode, env } = await playOne({}, { sampler, malformed: { onMalformed: { tell: 1 } } })
    const [first, second] = sampler.requests.map(promptText)
    const told = MALFORMED_MESSAGE.replace('{details}', 'missing_name in " {}"')
    expect(second).toBe(`${first}${bad}⟨end⟩⟨user⟩${told}⟨end⟩⟨assistant⟩`)
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(env.replies.map(({ content }) => content)).toEqual(['done'])
    expect(episode.metrics).toMatchObject({ malformed_replies: 1, turns: 1, replies: 2 })
  })

  test('statement 21: where the template can’t go on, the next prompt is the last valid conversation plus the answer', async () => {
    const sampler = scriptedSampler([bad, 'done'])
    const renderer = charRenderer({ rewritesHistory: true })
    const malformed = { onMalformed: { tell: 1, message: 'What? {details}' } } as const
    await playOne({ observation: { messages: [user('Hi')] } }, { sampler, renderer, malformed })
    expect(promptText(sampler.requests[1]!)).toBe(
      '⟨user⟩Hi⟨end⟩⟨user⟩What? missing_name in " {}"⟨end⟩⟨assistant⟩',
    )
  })

  test.each([
    [undefined, true],
    [true, true],
    [false, false],
  ])('is trained or not as the policy says: %s', async (train, trained) => {
    const policy = { onMalformed: { tell: 1 }, ...(train === undefined ? {} : { train }) } as const
    const { episode } = await playOne({}, { replies: [bad, 'done'], malformed: policy })
    expect(episode.replies.map((reply) => reply.trained)).toEqual([trained, true])
  })

  test('beside a readable call does no harm: the call runs and the rest is counted', async () => {
    const { episode, env } = await playOne({}, { replies: ['⟦look {}⟧⟦ {}⟧', 'done'] })
    expect(env.replies[0]?.toolCalls).toHaveLength(1)
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(episode.metrics).toMatchObject({
      malformed_calls: 1,
      malformed_replies: 0,
      tool_calls: 1,
    })
  })

  test('is also one that its sampler says was stopped, and that has no end', async () => {
    const ids = charReply('no end', false)
    const { episode } = await playOne({}, { replies: [{ ids, stop: 'stop' }] })
    expect(episode.end).toEqual({ kind: 'cut', by: 'malformed_reply' })
  })

  test('is not told when no reply is left to take it to heart', async () => {
    const malformed = { onMalformed: { tell: 5 } } as const
    const { episode } = await playOne({}, { replies: [bad], malformed, limits: { replies: 2 } })
    expect(episode.end).toEqual({ kind: 'cut', by: 'malformed_reply' })
    expect(episode.replies).toHaveLength(2)
  })
})

describe('a sample that is no good', () => {
  test.each([
    [
      'too few log-probabilities',
      { ids: [65, charMarkers.end], logprobs: [-1] },
      'reply 0 has 2 ids and 1 log-probabilities',
    ],
    [
      'NaN among them',
      { ids: [65, charMarkers.end], logprobs: [-1, Number.NaN] },
      'the log-probability of id 1 is NaN',
    ],
  ])('F2: %s fails the episode by name', async (_, reply, message) => {
    const group = await play(
      scriptedPlan(1, () => scriptedEnv()),
      {
        replies: [reply],
        failures: { kind: 'minGroup' },
      },
    )
    expect(group.episodes).toEqual([])
    expect(group.failures).toMatchObject([{ phase: 'sample', error: { name: 'DataError' } }])
    expect(group.failures[0]?.error.message).toContain(message)
  })

  test('an empty reply is a reply without calls', async () => {
    const { episode, env } = await playOne({}, { replies: [{ ids: [charMarkers.end] }] })
    expect(episode.end).toEqual({ kind: 'completed' })
    expect(env.replies).toEqual([{ role: 'assistant', content: '' }])
  })
})

describe('images', () => {
  const image: ImagePart = {
    type: 'image',
    format: 'png',
    data: Uint8Array.of(1),
    width: 2,
    height: 2,
  }
  const observation = {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'See ' }, image] }],
  } as const

  test('E16: without a place for images a task with one is a mistake of the set-up', async () => {
    await expect(playOne({ observation })).rejects.toThrow(
      'the task shows an image, and the renderer char has no images',
    )
    expect(playNeeds(charRenderer())).toEqual({ tools: true, images: false, changedHead: true })
  })

  test('E16: a placeholder stands for it where chosen, and is counted', async () => {
    const sampler = scriptedSampler(['done'])
    const { episode } = await playOne({ observation }, { sampler, images: 'placeholder' })
    expect(promptText(sampler.requests[0]!)).toContain(`See ${IMAGE_PLACEHOLDER}`)
    expect(episode.metrics['images_replaced']).toBe(1)
    expect(playNeeds(charRenderer(), 'placeholder').images).toBe(true)
  })

  test('a renderer with images shows it', async () => {
    const sampler = scriptedSampler(['done'])
    const renderer = charRenderer({ imageTokens: 4 })
    const { episode } = await playOne({ observation }, { sampler, renderer })
    expect(promptText(sampler.requests[0]!)).toContain('See <image>')
    expect(episode.replies[0]?.prompt.length).toBe('See '.length + 4 + 3)
  })
})

describe('hooks', () => {
  test('add user messages before a reply, which the policy sees and the record has', async () => {
    const sampler = scriptedSampler(['⟦look {}⟧', 'done'])
    const seen: number[] = []
    const { episode } = await playOne(
      {},
      {
        sampler,
        hooks: {
          beforeReply({ replies, messages }) {
            seen.push(messages.length)
            return replies === 1 ? [user('Hurry.')] : []
          },
        },
      },
    )
    expect(promptText(sampler.requests[1]!)).toMatch(/⟨tool⟩ok⟨end⟩⟨user⟩Hurry\.⟨end⟩⟨assistant⟩$/)
    expect(seen).toEqual([1, 3])
    expect(sequencesOf(episode.replies)).toHaveLength(1)
  })

  test('that throw fail the episode', async () => {
    const hooks = {
      beforeReply() {
        throw new Error('no hook')
      },
    }
    await expect(playOne({}, { hooks })).rejects.toThrow('no hook')
  })
})

describe('the episode of an Env', () => {
  test('E6: ends once, however often and at once it is told to', async () => {
    const env = scriptedEnv()
    const episode = envEpisode(env)
    await Promise.all([
      episode.end({ kind: 'completed' }),
      episode.end({ kind: 'cut', by: 'turns' }),
    ])
    await episode.end({ kind: 'cancelled' })
    expect(env.log).toEqual(['end completed'])
  })

  test('is played once', async () => {
    const context: PlayContext = {
      signal: new AbortController().signal,
      seed: 1,
      limits: {},
      record: { async conversation() {}, async reply() {}, async observation() {} },
    }
    const sampler = scriptedSampler(['done'])
    const episode = envEpisode(scriptedEnv())
    const policy = { sampler, renderer: charRenderer(), sampling: { temperature: 0.5 } }
    await episode.play(policy, context)
    await expect(episode.play(policy, context)).rejects.toThrow(StateError)
    expect(sampler.requests).toMatchObject([
      { temperature: 0.5, seeds: [replySeed(1, 0)], stop: charRenderer().stop },
    ])
  })

  test('is refused for an object of another contract', () => {
    const other = { ...scriptedEnv(), specVersion: 'env/2' } as unknown as Env
    expect(() => envEpisode(other)).toThrow(
      'expected an object with specVersion "env/1", got "env/2"',
    )
  })
})
