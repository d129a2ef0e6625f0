import {
  createPrompt,
  mergeChunks,
  tokenChunk,
  tokenPrompt,
  type PlayedReply,
  type PromptChunk,
  type RenderedPrompt,
} from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { countSplits, sequenceIds, sequencesOf, UNEXPLAINED_SPLIT } from '../src/index.ts'

/** A reply to a prompt; log-probabilities are −0.1, −0.2, … */
function reply(
  prompt: RenderedPrompt | readonly number[],
  ids: readonly number[],
  more: Partial<PlayedReply> = {},
): PlayedReply {
  return {
    prompt: 'length' in prompt && 'added' in prompt ? prompt : tokenPrompt(prompt),
    sample: {
      ids: Int32Array.from(ids),
      logprobs: Float32Array.from(ids, (_, index) => -(index + 1) / 10),
      stop: 'stop',
    },
    version: { id: 'v0', step: 0 },
    sampling: {},
    message: { role: 'assistant', content: '' },
    termination: 'stop',
    malformed: [],
    trained: true,
    ms: 1,
    ...more,
  }
}

const idsOf = (replies: readonly PlayedReply[]) =>
  sequencesOf(replies).map((sequence) => [...sequenceIds(sequence)])

/** 1 where an id was sampled and may be trained. */
const masksOf = (replies: readonly PlayedReply[]) =>
  sequencesOf(replies).map(({ length, spans }) => {
    const mask = Array.from({ length }, () => 0)
    for (const { start, length: ids, trained } of spans)
      mask.fill(trained ? 1 : 0, start, start + ids)
    return mask
  })

describe('by comparing ids', () => {
  test('statement 44: a prompt that starts with all tokens before it goes on, another begins anew', () => {
    const replies = [reply([1, 2], [3]), reply([1, 2, 3, 4], [5]), reply([9, 8], [7])]
    expect(idsOf(replies)).toEqual([
      [1, 2, 3, 4, 5],
      [9, 8, 7],
    ])
    expect(masksOf(replies)).toEqual([
      [0, 0, 1, 0, 1],
      [0, 0, 1],
    ])
    expect(sequencesOf(replies).map(({ split }) => split)).toEqual([undefined, UNEXPLAINED_SPLIT])
  })

  test('statement 45: a reply that comes back in other ids splits, and the other ids are not trained', () => {
    const replies = [reply([1, 2, 3], [10, 11]), reply([1, 2, 3, 12, 20], [30])]
    expect(masksOf(replies)).toEqual([
      [0, 0, 0, 1, 1],
      [0, 0, 0, 0, 0, 1],
    ])
  })

  test('statement 46: a reply that is not trained stays as context', () => {
    const replies = [reply([1, 2], [3], { trained: false }), reply([1, 2, 3, 4], [5])]
    expect(idsOf(replies)).toEqual([[1, 2, 3, 4, 5]])
    expect(masksOf(replies)).toEqual([[0, 0, 0, 0, 1]])
  })

  test('statement 47: an episode that sampled nothing has no sequence', () => {
    expect(sequencesOf([])).toEqual([])
  })

  test('statement 48: an image takes its positions and has no ids', () => {
    const replies = [reply(createPrompt([tokenChunk([1]), image(1), tokenChunk([2])]), [5, 6])]
    const [sequence] = sequencesOf(replies)
    expect(sequence?.chunks.map(({ type }) => type)).toEqual(['tokens', 'image', 'tokens'])
    expect([...sequenceIds(sequence!)]).toEqual([1, -1, -1, -1, 2, 5, 6])
    expect(sequence?.spans[0]).toMatchObject({ start: 5, length: 2 })
  })

  test('an equal image goes on, another image splits', () => {
    const first = reply(pictured(1), [5])
    expect(sequencesOf([first, reply(pictured(1, 5, 6), [7])])).toHaveLength(1)
    expect(sequencesOf([first, reply(pictured(2, 5, 6), [7])])).toHaveLength(2)
  })

  test('statement 49, F2: a reply without one log-probability for each id is refused by name', () => {
    const wrong = reply([1, 2], [3, 4], {
      sample: { ids: Int32Array.of(3, 4), logprobs: Float32Array.of(-1), stop: 'stop' },
    })
    expect(() => sequencesOf([reply([1], [2]), wrong])).toThrow(
      'reply 1 has 2 ids and 1 log-probabilities',
    )
  })

  test('statement 50: a reply of no ids has a span of none', () => {
    const [sequence] = sequencesOf([reply([1, 2, 3], [])])
    expect(sequence).toMatchObject({ length: 3, spans: [{ start: 3, length: 0 }] })
  })

  test('F2: a history that became shorter splits, and is never padded', () => {
    const replies = [reply([1, 2, 3, 4, 5, 6], [7, 8]), reply([1, 2, 3], [9])]
    expect(idsOf(replies)).toEqual([
      [1, 2, 3, 4, 5, 6, 7, 8],
      [1, 2, 3, 9],
    ])
  })

  test('F8: an end-of-text id in the middle of a reply is kept where it stood', () => {
    const eos = 151_643
    const replies = [reply([1, 2], [10, eos, 11]), reply([1, 2, 10, eos, 11, 20], [30])]
    expect(idsOf(replies)).toEqual([[1, 2, 10, eos, 11, 20, 30]])
  })

  test('agents that take turns each have a sequence, and none counts as split', () => {
    const replies = [
      reply([1], [2], { agent: 'lead' }),
      reply([50], [51], { agent: 'helper' }),
      reply([1, 2, 3], [4], { agent: 'lead' }),
      reply([50, 51, 52], [53], { agent: 'helper' }),
    ]
    expect(idsOf(replies)).toEqual([
      [1, 2, 3, 4],
      [50, 51, 52, 53],
    ])
    expect(countSplits(sequencesOf(replies)).size).toBe(0)
  })

  test('each span keeps the log-probabilities and the version it was sampled with', () => {
    const replies = [
      reply([1], [2, 3], { version: { id: 'v3', step: 3 } }),
      reply([1, 2, 3, 4], [5], { version: { id: 'v4', step: 4 } }),
    ]
    const [sequence] = sequencesOf(replies)
    expect(sequence?.spans).toEqual([
      {
        reply: 0,
        start: 1,
        length: 2,
        logprobs: Float32Array.of(-0.1, -0.2),
        version: { id: 'v3', step: 3 },
        trained: true,
      },
      {
        reply: 1,
        start: 4,
        length: 1,
        logprobs: Float32Array.of(-0.1),
        version: { id: 'v4', step: 4 },
        trained: true,
      },
    ])
  })
})

/** A conversation of so many turns whose prompts extend each other; `counted` counts the whole prompts that were made. */
function extended(turns: number, counted: { chunks: number }): readonly PlayedReply[] {
  const replies: PlayedReply[] = []
  let prompt = counting(createPrompt([tokenChunk([0, 1, 2])]), counted)
  for (let turn = 0; turn < turns; turn += 1) {
    const ids = [100 + turn, 200 + turn]
    replies.push(reply(prompt, ids))
    // As renderers do: the reply, then what follows, perhaps over several handles.
    const answered = createPrompt([tokenChunk(ids), tokenChunk([3])], prompt)
    prompt = counting(createPrompt([tokenChunk([4, turn])], answered), counted)
  }
  return replies
}

describe('by the handles of prompts', () => {
  test('statement 51: five turns that extend each other are one sequence; history that is rewritten makes five', () => {
    const replies = extended(5, { chunks: 0 })
    expect(sequencesOf(replies)).toHaveLength(1)
    const stripped = replies.map((one, turn) =>
      reply([0, 1, 2, ...Array.from({ length: turn }, () => 7)], [...one.sample.ids], {
        restart: 'reasoning is stripped',
      }),
    )
    const sequences = sequencesOf(stripped)
    expect(sequences).toHaveLength(5)
    expect(countSplits(sequences)).toEqual(new Map([['reasoning is stripped', 4]]))
    const sampled = sequences.flatMap(({ spans }) => spans).map(({ reply: index }) => index)
    expect(sampled).toEqual([0, 1, 2, 3, 4])
  })

  test('the whole prompt is made for the first reply only', () => {
    const counted = { chunks: 0 }
    const [sequence, ...more] = sequencesOf(extended(200, counted))
    expect(more).toEqual([])
    expect(sequence?.length).toBe(3 + 200 * 2 + 199 * 3)
    expect(counted.chunks).toBe(1)
  })

  test('the same tokens come out as by comparing ids', () => {
    const replies = extended(6, { chunks: 0 })
    const plain = replies.map((one) => ({ ...one, prompt: createPrompt(one.prompt.chunks()) }))
    expect(sequencesOf(replies)).toEqual(sequencesOf(plain))
  })

  test('F3, F8: a prompt that claims to extend and has other ids splits; nothing is lost or doubled', () => {
    const first = reply(createPrompt([tokenChunk([1, 2])]), [10, 11])
    const liar = createPrompt([tokenChunk([10, 99, 40, 41])], first.prompt)
    const replies = [first, reply(liar, [50])]
    expect(idsOf(replies)).toEqual([
      [1, 2, 10, 11],
      [1, 2, 10, 99, 40, 41, 50],
    ])
    expect(masksOf(replies)[1]).toEqual([0, 0, 0, 0, 0, 0, 1])
  })

  test('a reply sampled again for the same prompt begins a sequence of its own', () => {
    const prompt = createPrompt([tokenChunk([1, 2])])
    const kept = reply(prompt, [4])
    const next = createPrompt([tokenChunk([4, 9])], prompt)
    expect(idsOf([reply(prompt, [3]), kept, reply(next, [5])])).toEqual([
      [1, 2, 3],
      [1, 2, 4, 9, 5],
    ])
  })
})

function pictured(byte: number, ...after: readonly number[]): RenderedPrompt {
  return createPrompt([tokenChunk([1]), image(byte), tokenChunk([2, ...after])])
}

function image(byte: number): PromptChunk {
  return { type: 'image', format: 'png', data: Uint8Array.of(byte), tokens: 3 }
}

function counting(prompt: RenderedPrompt, counted: { chunks: number }): RenderedPrompt {
  return {
    length: prompt.length,
    parent: prompt.parent,
    added: prompt.added,
    chunks() {
      counted.chunks += 1
      return mergeChunks(prompt.chunks())
    },
  }
}
