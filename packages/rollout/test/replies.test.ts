import { isRewarded, type UserMessage } from '@tiltyard/core'
import {
  charMarkers,
  charRenderer,
  charReply,
  scriptedEnv,
  scriptedPlan,
  scriptedSampler,
} from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { MALFORMED_MESSAGE } from '../src/index.ts'
import { answerOf, play, playOne, promptOf, promptText } from './support/play.ts'

const user = (content: string): UserMessage => ({ role: 'user', content })

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
