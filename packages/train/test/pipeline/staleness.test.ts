import { expect, test } from 'vitest'

import { createSchedule } from '../../src/pipeline/schedule.ts'

const ref = { batch: 0, group: 0 }

/** What is done with a group that weights of `version` sampled, when it arrives at `step`. */
function doneWith(step: number, version: number) {
  const schedule = createSchedule({
    maxStaleness: 2,
    substeps: 1,
    minibatches: 1,
    groupsPerStep: 1,
    stale: 'replay',
    from: step,
  })
  schedule.next({ type: 'begin' })
  schedule.next({ type: 'batch', batch: 0, groups: 1 })
  return schedule.next({ type: 'played', ref, version, usable: true })
}

test.each([
  [5, 3],
  [2, 0],
])(
  'statement 91: with at most 2 steps of staleness, step %i trains version %i',
  (step, version) => {
    expect(doneWith(step, version)).toContainEqual({
      type: 'train',
      step,
      groups: [ref],
      updates: 1,
    })
  },
)

test.each([
  [6, 3],
  [3, 0],
])(
  'statement 91: with at most 2 steps of staleness, step %i has version %i played again',
  (step, version) => {
    expect(doneWith(step, version)).toEqual([
      { type: 'stale', ref, step, fate: 'replay' },
      { type: 'play', ref },
    ])
  },
)
