import {
  checkDatum,
  createPrompt,
  DataError,
  tokenChunk,
  tokenPrompt,
  trainedTokens,
  type PlayedReply,
} from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { assembleEpisode, type PolicyDatum } from '../../src/data/assemble.ts'
import { judgeGroup } from '../../src/data/prepare.ts'
import { shiftTokens } from '../../src/data/shift.ts'
import { playedGroup, playedReply } from '../support/played.ts'

/** A datum as lists, float32 values rounded for reading. */
function shown({ datum, mask, logprobs, advantages }: PolicyDatum) {
  return {
    input: datum.input.flatMap((chunk): readonly (number | string)[] =>
      chunk.type === 'tokens' ? [...chunk.ids] : [`image ${chunk.tokens}`],
    ),
    targets: [...datum.targets],
    q: rounded(logprobs),
    A: rounded(advantages),
    m: [...mask],
  }
}
const rounded = (values: Float32Array) => Array.from(values, (value) => Number(value.toFixed(6)))

const assemble = (replies: readonly PlayedReply[], advantage: number) =>
  assembleEpisode({ replies }, advantage)

const E1 = () => [
  playedReply([1, 2, 3], [10, 11], [-0.5, -0.25]),
  playedReply([1, 2, 3, 10, 11, 20], [30, 31], [-1, -2]),
]

const weightOf = (data: readonly PolicyDatum[]) =>
  data.reduce((sum, { advantages }) => sum + advantages.reduce((total, each) => total + each, 0), 0)

/** Two tokens of thinking and one of text. */
const thinkingTurn = (turn: number) => [900 + turn, 910 + turn, 50 + turn]

describe('assembling an episode', () => {
  test('statement 42: one turn becomes one datum', () => {
    const data = assemble([playedReply([1, 2, 3], [10, 11], [-0.5, -0.25])], 0.5)
    expect(data.map(shown)).toEqual([
      {
        input: [1, 2, 3, 10],
        targets: [2, 3, 10, 11],
        q: [0, 0, -0.5, -0.25],
        A: [0, 0, 0.5, 0.5],
        m: [0, 0, 1, 1],
      },
    ])
  })

  test('statement 43: two turns that extend each other become one datum', () => {
    expect(assemble(E1(), 0.5).map(shown)).toEqual([
      {
        input: [1, 2, 3, 10, 11, 20, 30],
        targets: [2, 3, 10, 11, 20, 30, 31],
        q: [0, 0, -0.5, -0.25, 0, -1, -2],
        A: [0, 0, 0.5, 0.5, 0, 0.5, 0.5],
        m: [0, 0, 1, 1, 0, 1, 1],
      },
    ])
  })

  test('statement 44: a prompt that does not go on begins a new datum', () => {
    const data = assemble(
      [
        playedReply([1, 2], [3], [-0.1]),
        playedReply([1, 2, 3, 4], [5], [-0.2]),
        playedReply([9, 8], [7], [-0.3]),
      ],
      -1,
    )
    expect(data.map(shown)).toEqual([
      {
        input: [1, 2, 3, 4],
        targets: [2, 3, 4, 5],
        q: [0, -0.1, 0, -0.2],
        A: [0, -1, 0, -1],
        m: [0, 1, 0, 1],
      },
      { input: [9, 8], targets: [8, 7], q: [0, -0.3], A: [0, -1], m: [0, 1] },
    ])
    expect(data.map(({ index }) => index)).toEqual([0, 1])
  })

  test('statement 45: ids that were encoded anew are context, and are not trained', () => {
    const data = assemble(
      [playedReply([1, 2, 3], [10, 11]), playedReply([1, 2, 3, 12, 20], [30])],
      1,
    )
    expect(data.map(({ mask }) => [...mask])).toEqual([
      [0, 0, 1, 1],
      [0, 0, 0, 0, 1],
    ])
    expect([...data[1]!.datum.targets]).toEqual([2, 3, 12, 20, 30])
  })

  test('statement 46: a masked reply stays in the sequence, with its log-probability, and trains nothing', () => {
    const data = assemble(
      [
        playedReply([1, 2], [3], [-0.1], { trained: false }),
        playedReply([1, 2, 3, 4], [5], [-0.2]),
      ],
      1,
    )
    expect(data.map(shown)).toMatchObject([
      { q: [0, -0.1, 0, -0.2], A: [0, 0, 0, 1], m: [0, 0, 0, 1] },
    ])
  })

  test('F34: an episode that is masked all over has no datum, so it counts in no sum and in no mean', () => {
    expect(assemble([playedReply([1], [2, 3], [-7, -8], { trained: false })], 2)).toEqual([])
  })

  test('statement 47: an episode that sampled nothing has no datum', () => {
    expect(assemble([], 1)).toEqual([])
  })

  test('statement 48: an image takes its positions in every array, with target 0', () => {
    const image = { type: 'image', format: 'png', data: new Uint8Array(), tokens: 3 } as const
    const prompt = createPrompt([tokenChunk([1]), image, tokenChunk([2])])
    const [datum] = assemble([playedReply(prompt, [5, 6], [-0.1, -0.2])], 1)
    expect(shown(datum!)).toEqual({
      input: [1, 'image 3', 2, 5],
      targets: [0, 0, 0, 2, 5, 6],
      q: [0, 0, 0, 0, -0.1, -0.2],
      A: [0, 0, 0, 0, 1, 1],
      m: [0, 0, 0, 0, 1, 1],
    })
  })

  test('statement 49: a single position is too short, and a log-probability too few is an error', () => {
    expect(() => shiftTokens([tokenChunk([1])])).toThrow(DataError)
    expect(() => shiftTokens([tokenChunk([1])])).toThrow('1 positions is too short')
    // Of an episode that sampled nothing there is nothing to shift (statement 50).
    expect(assemble([playedReply([1], [])], 1)).toEqual([])
    expect(() => assemble([playedReply([1, 2], [3, 4], [-0.1])], 1)).toThrow(
      'reply 0 has 2 ids and 1 log-probabilities',
    )
  })

  test('a sequence that ends with an image has no last target', () => {
    const image = { type: 'image', format: 'png', data: new Uint8Array(), tokens: 3 } as const
    expect(() => shiftTokens([tokenChunk([1]), image])).toThrow('ends with an image')
  })

  test('statement 50: an empty reply alone makes no datum', () => {
    expect(assemble([playedReply([1, 2, 3], [])], 1)).toEqual([])
    expect(assemble([playedReply([], [])], 1)).toEqual([])
  })

  test('an empty reply amid others takes no position', () => {
    const data = assemble(
      [playedReply([1, 2], [3]), playedReply([1, 2, 3, 4], []), playedReply([1, 2, 3, 4], [5])],
      1,
    )
    expect(data.map(({ mask }) => [...mask])).toEqual([[0, 1, 0, 1]])
  })

  test('statement 51: five turns are one datum when prompts extend, five when history is stripped', () => {
    const turns = [0, 1, 2, 3, 4]
    const extending = turns.map((turn) =>
      playedReply(
        turns
          .slice(0, turn + 1)
          .flatMap((each) => (each === turn ? [100 + each] : [100 + each, 200 + each])),
        [200 + turn],
      ),
    )
    expect(assemble(extending, 1)).toHaveLength(1)
    const stripped = turns.map((turn) => playedReply([100 + turn, 100 + turn], [200 + turn]))
    expect(assemble(stripped, 1)).toHaveLength(5)
  })

  test('F1: the sampled ids stand in the datum as they were sampled, though text would be encoded otherwise', () => {
    const prompt = tokenPrompt([1, 2])
    const reply = playedReply(prompt, [501, 502])
    const next = createPrompt([tokenChunk([501, 502]), tokenChunk([3])], prompt)
    const [datum, ...others] = assemble([reply, playedReply(next, [4])], 1)
    expect(others).toEqual([])
    expect([...datum!.datum.targets]).toEqual([2, 501, 502, 3, 4])
  })

  test('F3: an observation after stripped thinking is whole, and masked', () => {
    const thinking = Array.from({ length: 40 }, (_, index) => 1000 + index)
    const observation = [71, 72, 73]
    const replies = [
      playedReply([1, 2], [...thinking, 5]),
      playedReply([1, 2, 5, ...observation], [...thinking, 6]),
    ]
    const [, second] = assemble(replies, 1)
    const at = [...second!.datum.targets].indexOf(71)
    expect(second!.datum.targets.slice(at, at + 3)).toEqual(Int32Array.from(observation))
    expect(second!.mask.slice(at, at + 3)).toEqual(Float32Array.of(0, 0, 0))
  })

  test('F4: every sampled token is trained once, whatever happens to it in later prompts', () => {
    const replies = [
      playedReply([1], thinkingTurn(0)),
      playedReply([1, 50, 2], thinkingTurn(1)),
      playedReply([1, 50, 2, 51, 3], thinkingTurn(2)),
    ]
    const data = assemble(replies, 1)
    const masked = data.reduce(
      (sum, { mask }) => sum + mask.reduce((ones, bit) => ones + bit, 0),
      0,
    )
    expect(masked).toBe(9)
    expect(data.reduce((sum, { trained }) => sum + trained, 0)).toBe(9)
  })

  test('F5: the mask goes by what was sampled, not by token values: header 0, sampled end token 1, newline after it 0', () => {
    const [header, end, newline, word] = [7, 99, 8, 42]
    const replies = [
      playedReply([1, header], [word, end]),
      playedReply([1, header, word, end, newline, 2, header], [word, end]),
    ]
    const [datum] = assemble(replies, 1)
    const marks = [...datum!.datum.targets].map((target, at) => [target, datum!.mask[at]])
    expect(marks).toEqual([
      [header, 0],
      [word, 1],
      [end, 1],
      [newline, 0],
      [2, 0],
      [header, 0],
      [word, 1],
      [end, 1],
    ])
  })

  test('F35: exactly the sampled token has weight, at the position whose target it is', () => {
    const replies = [playedReply([10, 11], [12], [-0.7]), playedReply([10, 11, 12, 13], [])]
    const [datum] = assemble(replies, 1)
    expect(shown(datum!)).toMatchObject({
      targets: [11, 12, 13],
      q: [0, -0.7, 0],
      A: [0, 1, 0],
      m: [0, 1, 0],
    })
  })

  test('F33: as one datum or as three, an episode has the same total weight', () => {
    const one = assemble([playedReply([1], [2, 3, 4])], 0.5)
    const three = assemble(
      [playedReply([1], [2]), playedReply([8], [3]), playedReply([9], [4])],
      0.5,
    )
    expect(one).toHaveLength(1)
    expect(three).toHaveLength(3)
    expect(weightOf(three)).toBe(weightOf(one))
  })

  test('data pass the check of every policy loss, and say how much they train', () => {
    const [datum] = assemble(E1(), 0.5)
    expect(() => checkDatum(datum!.datum, { name: 'ppo' })).not.toThrow()
    expect(trainedTokens(datum!.datum)).toBe(4)
    expect(datum!.trained).toBe(4)
  })

  test('input and targets of one run of tokens share their memory', () => {
    const [{ datum }] = assemble(E1(), 1) as [PolicyDatum]
    const [chunk] = datum.input
    expect(chunk?.type === 'tokens' && chunk.ids.buffer === datum.targets.buffer).toBe(true)
  })

  test('F23: a failed episode is no member of its group, so nothing of it trains', () => {
    const group = playedGroup([{ reward: 1 }, { reward: 0 }], {
      size: 3,
      failures: [
        {
          key: { split: 'train', step: 0, group: 0, member: 2, attempt: 0 },
          phase: 'tool',
          error: { name: 'Error', message: 'the database is gone' },
        },
      ],
    })
    expect(judgeGroup(group).verdicts).toHaveLength(2)
  })
})
