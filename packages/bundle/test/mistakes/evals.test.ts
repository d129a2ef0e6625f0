import { describe, expect, test } from 'vitest'

import { makeBundle } from '../support/make-bundle.ts'
import { mistakesOf, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'B3: an eval with the name of all tasks',
    parts: { manifest: { evals: { all: { ids: ['one'] } } } },
    mistakes: [
      {
        at: 'bundle.json:19',
        message: '"all" is the name of all tasks; call the eval something else',
      },
    ],
  },
  {
    name: 'B3: an eval with a task that does not exist, at the id, with the nearest one',
    parts: { manifest: { evals: { smoke: { ids: ['one', 'ones'] } } } },
    mistakes: [
      { at: 'bundle.json:22', message: 'eval "smoke": unknown task "ones"; did you mean "one"?' },
    ],
  },
  {
    name: 'B3: an eval’s file with a task that does not exist, at its line',
    parts: {
      manifest: { evals: { smoke: { file: 'evals/smoke.txt' } } },
      files: { 'evals/smoke.txt': 'one\nsomething else\n' },
    },
    mistakes: [{ at: 'evals/smoke.txt:2', message: 'eval "smoke": unknown task "something else"' }],
  },
  {
    name: 'B3: an eval that lists a task twice',
    parts: { manifest: { evals: { smoke: { ids: ['one', 'one'] } } } },
    mistakes: [{ at: 'bundle.json:22', message: 'eval "smoke": task "one" is listed twice' }],
  },
  {
    name: 'B3: an eval that no task fits',
    parts: { manifest: { evals: { smoke: { where: { tags: ['s1'] } } } } },
    mistakes: [{ at: 'bundle.json:19', message: 'eval "smoke" has no tasks' }],
  },
  {
    name: 'B3: an eval of no known form',
    parts: { manifest: { evals: { smoke: { id: ['one'] } } } },
    mistakes: [
      {
        at: 'bundle.json:19',
        message:
          'evals.smoke: expected { "file": path }, { "ids": [ids] } or { "where": { "tags", "meta" } }',
      },
    ],
  },
]

describe('loadBundle names, of the evals,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })
})
