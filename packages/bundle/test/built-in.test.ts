import type { JsonObject } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { type Chat, expectScore, playTask } from '../src/index.ts'
import { makeBundle } from './support/make-bundle.ts'

const bundleOf = (use: string, expected: JsonObject, options: JsonObject = {}) =>
  makeBundle({
    manifest: { steps: [{ name: 'step', use, options }] },
    tasks: [{ id: 'one', turns: [{ prompt: 'Go.' }], expect: expected }],
  })

describe('jsonReply', () => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' }, people: { type: 'integer' } },
    required: ['city', 'people'],
  }

  test.each([
    ['{"city": "Oslo", "people": 700000}', 1],
    ['Here it is:\n```json\n{"city": "Oslo", "people": 700000}\n```', 1],
    ['{"city": "Oslo", "people": "many"}', 0],
    ['Oslo', 0],
    ['', 0],
  ])('%j scores %d', async (reply, score) => {
    await expectScore(await bundleOf('jsonReply', { schema }), 'one', [reply], { step: score })
  })

  test('a schema that is none is a mistake of the task', async () => {
    await expect(bundleOf('jsonReply', { schema: { type: 'objekt' } })).rejects.toThrow(
      'step "step": it needs "expect.schema": no JSON Schema',
    )
  })
})

describe('judge', () => {
  const rubric = 'The answer is polite.'

  function judged(answer: string) {
    const asked: string[] = []
    const chat: Chat = {
      name: 'judge',
      reply: (messages) => {
        asked.push(...messages.map(({ content }) => content as string))
        return Promise.resolve(answer)
      },
    }
    return { asked, chats: { judge: chat } }
  }

  test('a model scores by the rubric, with its reason as the note', async () => {
    const { asked, chats } = judged('```json\n{"reason": "Kind.", "score": 0.8}\n```')
    const bundle = await bundleOf('judge', { rubric })
    const { outcome } = await expectScore(bundle, 'one', ['Gladly.'], { step: 0.8 }, { chats })
    expect(outcome.scores['step']).toEqual({ value: 0.8, note: 'Kind.' })
    expect(asked[1]).toContain(rubric)
    expect(asked[1]).toContain('user: Go.\nassistant: Gladly.')
  })

  test('without a model the step is unscored', async () => {
    const bundle = await bundleOf('judge', { rubric }, { chat: 'big' })
    const { outcome } = await expectScore(bundle, 'one', ['Gladly.'], { step: 'unscored' })
    expect(outcome.scores['step']).toEqual({ unscored: 'no chat "big" was given' })
  })

  test.each(['Kind.', '{"score": 7, "reason": ""}', '{"reason": ""}'])(
    'an answer that is no verdict is a failure, never a zero: %j',
    async (answer) => {
      const { chats } = judged(answer)
      const bundle = await bundleOf('judge', { rubric })
      const player = () => ({ role: 'assistant', content: 'Gladly.' }) as const
      await expect(playTask(bundle, 'one', player, { chats })).rejects.toMatchObject({
        code: 'VERIFIER',
      })
    },
  )
})
