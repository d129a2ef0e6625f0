import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { ConfigError } from '../src/errors.ts'
import { checkOptions, isPlainAddress, nearest, unknownName } from '../src/options.ts'

const schema = z.strictObject({
  maxConcurrentEpisodes: z.int().positive(),
  limits: z.strictObject({ replyTokens: z.int().optional() }).optional(),
  steps: z.array(z.strictObject({ name: z.string() })).default([]),
})

function mistakes(value: unknown) {
  try {
    checkOptions('training', schema, value)
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
    throw error
  }
  throw new Error('expected a ConfigError')
}

describe('checkOptions', () => {
  test('gives back what is right, with defaults', () => {
    expect(checkOptions('training', schema, { maxConcurrentEpisodes: 4 })).toEqual({
      maxConcurrentEpisodes: 4,
      steps: [],
    })
  })

  test('F74: an unknown key names the nearest right one', () => {
    expect(mistakes({ maxConcurrentEpisodes: 4, max_concurent_episodes: 4 })).toEqual([
      {
        at: '',
        message: 'unknown key "max_concurent_episodes"; did you mean "maxConcurrentEpisodes"?',
      },
    ])
  })

  test('an unknown key inside an optional object or a list names its neighbours', () => {
    const found = mistakes({
      maxConcurrentEpisodes: 1,
      limits: { replyToken: 1 },
      steps: [{ nam: 'x' }],
    })
    expect(found).toContainEqual({
      at: 'limits',
      message: 'unknown key "replyToken"; did you mean "replyTokens"?',
    })
    expect(found).toContainEqual({
      at: 'steps.0',
      message: 'unknown key "nam"; did you mean "name"?',
    })
  })

  test('every mistake is reported at once, with its path', () => {
    const found = mistakes({ maxConcurrentEpisodes: 0, limits: { replyTokens: 'many' } })
    expect(found.map(({ at }) => at)).toEqual(['maxConcurrentEpisodes', 'limits.replyTokens'])
  })
})

describe('nearest', () => {
  test('forgives case, separators and a third of the letters', () => {
    expect(nearest('Group-Size', ['groupSize', 'groups'])).toBe('groupSize')
    expect(nearest('lerning_rate', ['learningRate'])).toBe('learningRate')
    expect(nearest('smoek', ['smoke'])).toBe('smoke')
    expect(nearest('ab', ['ba'])).toBe('ba')
  })

  test('gives nothing when nothing is near', () => {
    expect(nearest('colour', ['groupSize'])).toBeUndefined()
    expect(unknownName('split', 'dev', ['train', 'held-out'])).toBe(
      'unknown split "dev"; there is train, held-out',
    )
  })
})

test.each([
  ['https://rl.example:8000/tinker', true],
  ['https://rl.example/@me', true],
  ['https://me:secret@rl.example', false],
  ['https://rl.example/?key=secret', false],
  ['https://rl.example/#secret', false],
])('isPlainAddress: %s, %s', (address, isPlain) => {
  expect(isPlainAddress(address)).toBe(isPlain)
})
