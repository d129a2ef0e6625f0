import { describe, expect, test } from 'vitest'

import { makeBundle, oneTask } from '../support/make-bundle.ts'
import { mistakesOf, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'B7: a step whose verifier does not exist, with the nearest one',
    parts: { manifest: { steps: [{ name: 'said', use: 'replyContain' }] } },
    mistakes: [
      {
        at: 'bundle.json:15',
        message: 'unknown verifier "replyContain"; did you mean "replyContains"?',
      },
    ],
  },
  {
    name: 'two steps of one name',
    parts: {
      manifest: {
        steps: [
          { name: 'a', use: 'always' },
          { name: 'a', use: 'always' },
        ],
      },
    },
    mistakes: [{ at: 'bundle.json:18', message: 'two steps are called "a"' }],
  },
  {
    name: 'a step that takes a name of the reward rules',
    parts: { manifest: { steps: [{ name: 'weighted', use: 'always' }] } },
    mistakes: [{ at: 'bundle.json:14', message: `"weighted" can't be a step's name` }],
  },
  {
    name: 'B7: a reward that names no step, with the steps that there are',
    parts: { manifest: { reward: 'db' } },
    mistakes: [
      {
        at: 'bundle.json:18',
        message: 'unknown scoring step "db"; there is always',
      },
    ],
  },
  {
    name: 'B7: weights that are all zero',
    parts: { manifest: { steps: [{ name: 'a', use: 'always', weight: 0 }], reward: 'weighted' } },
    mistakes: [{ at: 'bundle.json:19', message: 'no step has a weight above 0' }],
  },
  {
    name: 'a reward of no known form',
    parts: { manifest: { reward: { sum: ['always'] } } },
    mistakes: [
      {
        at: 'bundle.json:18',
        message: expect.stringMatching(
          /^reward: expected the name of a step, "weighted"/,
        ) as string,
      },
    ],
  },
  {
    name: 'a task that records a step that does not exist',
    parts: { tasks: [{ ...oneTask[0]!, steps: ['alway'] }] },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'unknown scoring step "alway"; did you mean "always"?' },
    ],
  },
  {
    name: 'a task that lacks what a built-in verifier compares with',
    parts: { manifest: { steps: [{ name: 'told', use: 'replyContains' }] } },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message:
          'step "told": it needs "expect.reply": Invalid input: expected array, received undefined',
      },
    ],
  },
  {
    name: 'a task that lacks the gold that its step compares with',
    parts: { manifest: { steps: [{ name: 'db', use: 'universeEqualsGold' }] } },
    mistakes: [{ at: 'tasks.jsonl:1', message: 'step "db": it needs "gold"' }],
  },
  {
    name: 'B7: a weight below zero',
    parts: { manifest: { steps: [{ name: 'a', use: 'always', weight: -1 }] } },
    mistakes: [
      {
        at: 'bundle.json:16',
        message: 'steps.0.weight: Too small: expected number to be >=0',
      },
    ],
  },
]

describe('loadBundle names, of steps and rewards,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })
})
