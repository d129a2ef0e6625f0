import { describe, expect, test } from 'vitest'

import { makeBundle, oneTask } from '../support/make-bundle.ts'
import { mistakesOf, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'a universe that is no JSON',
    parts: { files: { 'universe.json': '{' } },
    mistakes: [
      {
        at: 'bundle.json:8',
        message: `the universe can't be read: universe.json: this is no JSON`,
      },
    ],
  },
  {
    name: 'a universe that is no object',
    parts: { files: { 'universe.json': '3' } },
    mistakes: [{ at: 'bundle.json:8', message: 'a universe is a JSON object' }],
  },
  {
    name: 'a module’s universe that is no JSON',
    parts: {
      manifest: { universe: undefined },
      module: {
        verifiers: { always: () => 1 },
        universe: () => ({ at: new Date(0) }) as never,
      },
    },
    mistakes: [
      {
        at: 'bundle.json:1',
        message: "the universe can't be read: a universe holds JSON, which has no Date",
      },
    ],
  },
  {
    name: 'a start that sets what the universe has no place for',
    parts: {
      universe: { users: {} },
      tasks: [{ ...oneTask[0]!, start: [{ path: '/users/ann/email', value: 'x' }] }],
    },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message:
          'start: /users/ann/email: nothing to set "/users/ann/email" in: the universe has no object at "/users/ann"',
      },
    ],
  },
]

describe('loadBundle names, of the universe,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })
})
