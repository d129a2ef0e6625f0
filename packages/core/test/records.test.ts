import { expect, test } from 'vitest'

import { runEventSchema } from '../src/records/events.ts'
import { episodeId, groupId, parseEpisodeId, runGroupName } from '../src/records/keys.ts'
import { parseRecord, stringifyRecord } from '../src/records/typed-arrays.ts'

test('typed arrays survive a record bit for bit', () => {
  const value = {
    ids: Int32Array.of(-1, 2 ** 31 - 1),
    logprobs: Float32Array.of(-0.1, NaN, -Infinity),
    text: 'ä',
  }
  expect(parseRecord(stringifyRecord(value))).toEqual(value)
})

test('a large typed array survives a record', () => {
  const ids = Int32Array.from({ length: 100_000 }, (_, index) => index * 7)
  expect(parseRecord(stringifyRecord({ ids }))).toEqual({ ids })
})

test('a view into a larger buffer is recorded alone', () => {
  const view = Int32Array.of(1, 2, 3, 4).subarray(1, 3)
  expect(parseRecord(stringifyRecord(view))).toEqual(Int32Array.of(2, 3))
})

test('NaN outside typed arrays is refused by name: JSON has none', () => {
  expect(() => stringifyRecord({ values: { loss: NaN } })).toThrow('"loss" is NaN')
})

test('a key from outside that looks like our mark for typed arrays stays a key', () => {
  const value = { arguments: { $i32: 'x', $$f32: [1], other: { $i32: 'AAAA' } } }
  expect(parseRecord(stringifyRecord(value))).toEqual(value)
})

test('what is written equals JSON.stringify where JSON has a text for it', () => {
  const value = {
    text: 'lone \ud800, \u2028, "quoted"',
    'a "key"': [1e21, -0, 1.5, true, null],
    left: undefined,
    list: [undefined],
    empty: [{}, []],
  }
  expect(stringifyRecord(value)).toBe(JSON.stringify(value))
})

test('a value nested beyond the stack is refused as data, not by a crash', () => {
  let nested: unknown = 0
  for (let depth = 0; depth < 100_000; depth += 1) nested = [nested]
  expect(() => stringifyRecord(nested)).toThrow('nested too deeply')
})

test('ids of episodes read back, also past step 9999 and with a named evaluation', () => {
  const key = {
    split: 'eval',
    evaluation: 'smoke',
    step: 12_345,
    group: 3,
    member: 1,
    attempt: 2,
  } as const
  expect(episodeId(key)).toBe('eval/smoke/step-12345/g3/m1/a2')
  expect(parseEpisodeId(episodeId(key))).toEqual(key)
  const plain = { split: 'train', step: 7, group: 0, member: 0, attempt: 0 } as const
  expect(runGroupName(plain)).toBe('train/step-0007')
  expect(groupId(plain)).toBe('train/step-0007/g0')
  expect(parseEpisodeId(episodeId(plain))).toEqual(plain)
  expect(parseEpisodeId('train/step-7/g0/m0/a0')).toBeUndefined()
})

test('an event of an unknown type or with a wrong member is refused', () => {
  expect(runEventSchema.safeParse({ type: 'gossip' }).success).toBe(false)
  expect(runEventSchema.safeParse({ type: 'checkpoint', step: 1.5, name: 'x' }).success).toBe(false)
  expect(runEventSchema.safeParse({ type: 'checkpoint', step: 1, name: 'x' }).success).toBe(true)
})
