import { tokenChunk, type Datum } from '@tiltyard/core'
import { bigramBackend } from '@tiltyard/testkit'
import { describe, expect, test } from 'vitest'

import { issueUpdate, type UpdateOptions } from '../../src/optimize/update.ts'

const options: UpdateOptions = {
  loss: { name: 'cross_entropy' },
  updates: 1,
  adam: () => ({ learningRate: 0.1 }),
}

const datum = (...ids: readonly number[]): Datum => ({
  input: [tokenChunk(ids)],
  targets: Int32Array.from(ids),
  weights: new Float32Array(ids.length).fill(1),
})

const learnerOf = () =>
  bigramBackend({ vocabularySize: 8 }).learner({ model: 'bigram', adaptation: 'full' })

describe('calls that are sent back to back', () => {
  // Cut in four, the bad datum is in the second part: the first part's step has all its data.
  test.each([
    [1, 0],
    [2, 0],
    [4, 1],
  ])(
    'F45: with data that the learner refuses, of %d steps only the %d before it are made',
    async (updates, made) => {
      const learner = await learnerOf()
      // The loss has all it needs; only the learner knows how many ids there are.
      const data = [datum(1, 2), datum(3, 99), datum(4, 5), datum(6, 7)]
      const { settled } = issueUpdate(learner, data, { ...options, updates })
      await expect(settled).rejects.toThrow('id 99 is not below 8')
      expect(learner.steps).toBe(made)
    },
  )

  test('F33: an episode makes one optimizer step, as one datum and as three', async () => {
    for (const data of [[datum(1, 2, 3)], [datum(1), datum(2), datum(3)]]) {
      const learner = await learnerOf()
      const issued = issueUpdate(learner, data, options)
      await issued.settled
      expect([issued.updates, learner.steps]).toEqual([1, 1])
    }
  })

  test('the learner goes on with the next data when its caller does', async () => {
    const learner = await learnerOf()
    await expect(issueUpdate(learner, [datum(99)], options).settled).rejects.toThrow('id 99')
    await issueUpdate(learner, [datum(1, 2)], options).settled
    expect(learner.steps).toBe(1)
  })
})
