import { expect, test } from 'vitest'

import { isFresh } from '../../src/pipeline/staleness.ts'

test.each([
  [5, 3, true],
  [6, 3, false],
  [2, 0, true],
  [3, 0, false],
])(
  'statement 91: with at most 2 steps of staleness, step %i may train version %i: %s',
  (step, version, fresh) => {
    expect(isFresh(step, version, 2)).toBe(fresh)
  },
)
