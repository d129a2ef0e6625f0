import { ConfigError } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { createLearningRate } from '../../src/optimize/rate.ts'
import { recommendedLearningRate } from '../../src/optimize/recommend.ts'
import { scheduleMultiplier } from '../../src/optimize/schedule.ts'
import { packByTokens, splitEvenly } from '../../src/optimize/split.ts'

const items = (count: number) => Array.from({ length: count }, (_, index) => index)

describe('cutting a step', () => {
  test.each([
    [5, 2, [2, 3]],
    [5, 3, [1, 2, 2]],
    [7, 3, [2, 2, 3]],
    [10, 4, [2, 3, 2, 3]],
    [11, 4, [2, 3, 3, 3]],
    [2, 10, [1, 1]],
    [0, 3, []],
  ])('statement 61: %d in %d parts gives %j', (count, parts, sizes) => {
    const split = splitEvenly(items(count), parts)
    expect(split.map(({ length }) => length)).toEqual(sizes)
    expect(split.flat()).toEqual(items(count))
  })

  test('packs hold at most the budget, each item once, and an item beyond it alone', () => {
    const lengths = [5, 3, 9, 2, 4, 20, 1]
    const packs = packByTokens(lengths, 10)
    expect(packs.flat().toSorted((a, b) => a - b)).toEqual(items(7))
    const sums = packs.map((pack) => pack.reduce((sum, index) => sum + lengths[index]!, 0))
    expect(sums.filter((sum) => sum > 10)).toEqual([20])
    expect(packs).toHaveLength(4)
    expect(packByTokens(lengths)).toEqual([items(7)])
    expect(packByTokens([], 10)).toEqual([])
  })
})

describe('the learning rate', () => {
  test('statement 62: linear at 5 of 10, cosine at 9 of 10', () => {
    expect(scheduleMultiplier({ shape: 'linear' }, 5, 10)).toBe(0.5)
    expect(scheduleMultiplier({ shape: 'cosine' }, 9, 10)).toBeCloseTo(0.0244717, 7)
    expect(scheduleMultiplier({ shape: 'constant' }, 9, undefined)).toBe(1)
  })

  test.each([
    ['Qwen/Qwen3-8B', 4096, 'lora', '4.729791e-4'],
    ['Qwen/Qwen3-8B', 4096, 'full', '4.7298e-5'],
    ['Qwen/Qwen3.5-4B', 2560, 'lora', '4.9053e-4'],
    ['Qwen/Qwen3-30B-A3B', 2048, 'lora', '4.9908e-4'],
    ['Qwen/Qwen3-32B', 5120, 'lora', '4.6487e-4'],
    ['meta-llama/Llama-3.1-8B', 4096, 'lora', '2.856415e-4'],
    ['meta-llama/Llama-3.2-1B', 2048, 'full', '4.9082e-5'],
  ] as const)(
    'statement 62: recommended for %s of width %d, %s: %s',
    (model, hiddenSize, adaptation, rate) => {
      const found = recommendedLearningRate({ model, hiddenSize, adaptation })
      const decimals = rate.indexOf('e') - 2
      expect(found.toExponential(decimals)).toBe(rate)
    },
  )

  test('a family without calibration is refused by name', () => {
    expect(() =>
      recommendedLearningRate({ model: 'gpt-oss-20b', hiddenSize: 2880, adaptation: 'lora' }),
    ).toThrow('no calibration for "gpt-oss-20b"; there is one for qwen and llama')
  })

  test('the rate is held between warmup and fall', () => {
    const schedule = { shape: 'linear', warmup: 1, hold: 3 } as const
    const at = [0, 1, 3, 4, 6, 8, 9].map((step) => scheduleMultiplier(schedule, step, 8))
    expect(at).toEqual([0.5, 1, 1, 1, 0.5, 0, 0])
    expect(scheduleMultiplier({ shape: 'cosine', hold: 9 }, 9, 9)).toBe(0)
  })

  test('warmup rises, the floor holds, and steps beyond the end stay there', () => {
    const schedule = { shape: 'linear', warmup: 3, floor: 0.1 } as const
    const at = [0, 1, 2, 3, 8, 13, 20].map((step) => scheduleMultiplier(schedule, step, 13))
    expect(at).toEqual(
      [0.25, 0.5, 0.75, 1, 0.55, 0.1, 0.1].map((value) => expect.closeTo(value, 10) as number),
    )
  })

  test('F33: the schedule counts optimizer steps, and goes on after those made before', () => {
    const options = { learningRate: 1, schedule: { shape: 'linear' }, beta1: 0.8 } as const
    const fresh = createLearningRate(options, { made: 0, total: 4 })
    expect([0, 1, 2, 3].map(() => fresh.next().learningRate)).toEqual([1, 0.75, 0.5, 0.25])
    const resumed = createLearningRate(options, { made: 2, total: 4 })
    expect(resumed.next()).toEqual({ learningRate: 0.5, beta1: 0.8 })
    expect(resumed.last()).toBe(0.5)
  })

  test('a shape that needs an end is refused at once when there is none', () => {
    const options = { learningRate: 1, schedule: { shape: 'cosine', warmup: 5 } } as const
    expect(() => createLearningRate(options, { made: 0, total: undefined })).toThrow(ConfigError)
  })
})
