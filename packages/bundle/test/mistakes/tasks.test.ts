import { describe, expect, test } from 'vitest'

import { makeBundle, oneTask } from '../support/make-bundle.ts'
import { mistakesOf, withFindUser, type MistakenBundle } from '../support/mistakes.ts'

const gold = (
  ...calls: { readonly name: string; readonly arguments: Record<string, string> }[]
) => [{ ...oneTask[0]!, gold: { calls } }]

const bundles: readonly MistakenBundle[] = [
  {
    name: 'a file of tasks that does not exist',
    parts: { manifest: { tasks: ['task.jsonl'] } },
    mistakes: [
      { at: 'bundle.json:6', message: `the tasks can't be read: "task.jsonl" does not exist` },
    ],
  },
  {
    name: 'no tasks at all',
    parts: { manifest: { tasks: undefined } },
    mistakes: [
      {
        at: 'bundle.json:1',
        message: 'there are no tasks; name files under "tasks", or export a function "tasks"',
      },
    ],
  },
  {
    name: 'a module’s tasks that are wrong, by their place in the list',
    parts: {
      manifest: { tasks: undefined },
      module: {
        verifiers: { always: () => 1 },
        tasks: () => [...oneTask, { id: 'two', turn: [] } as never],
      },
    },
    mistakes: [{ at: 'bundle.mjs tasks[1]', message: 'unknown key "turn"; did you mean "turns"?' }],
  },
  {
    name: 'B1: an unknown key of a task, at its line',
    parts: {
      files: {
        'tasks.jsonl':
          '{"id":"a","turns":[{"prompt":"x"}]}\n\n{"id":"b","turns":[{"prompt":"x"}],"golds":{}}\n',
      },
    },
    mistakes: [{ at: 'tasks.jsonl:3', message: 'unknown key "golds"; did you mean "gold"?' }],
  },
  {
    name: 'B1: an unknown key inside a turn',
    parts: { files: { 'tasks.jsonl': '{"id":"a","turns":[{"prompt":"x","sistem":"y"}]}\n' } },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'turns.0: unknown key "sistem"; did you mean "system"?' },
    ],
  },
  {
    name: 'B2: an id that is a number',
    parts: { files: { 'tasks.jsonl': '{"id":17,"turns":[{"prompt":"x"}]}\n' } },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'id: Invalid input: expected string, received number' },
    ],
  },
  {
    name: 'B2: a task id that is there twice, with both places',
    parts: { tasks: [...oneTask, ...oneTask] },
    mistakes: [{ at: 'tasks.jsonl:2', message: 'task "one" is there already, at tasks.jsonl:1' }],
  },
  {
    name: 'a line that is no JSON',
    parts: { files: { 'tasks.jsonl': '{"id":"a","turns":[{"prompt":"x"}]}\n{"id":\n' } },
    mistakes: [{ at: 'tasks.jsonl:2', message: 'this is no JSON' }],
  },
  {
    name: 'a task without a prompt',
    parts: { tasks: [{ id: 'a' }] },
    mistakes: [{ at: 'tasks.jsonl:1', message: 'the task has neither "turns" nor a "user"' }],
  },
  {
    name: 'a task with a user that does not exist',
    parts: { tasks: [{ id: 'a', user: { use: 'shopper' } }] },
    mistakes: [{ at: 'tasks.jsonl:1', message: 'unknown user "shopper"' }],
  },
  {
    name: 'B6: a turn with a tool that does not exist',
    parts: {
      module: withFindUser,
      tasks: [{ id: 'a', turns: [{ prompt: 'x', tools: ['find_users'] }] }],
    },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'unknown tool "find_users"; did you mean "find_user"?' },
    ],
  },
  {
    name: 'B6: a turn whose system prompt does not exist',
    parts: { tasks: [{ id: 'a', turns: [{ prompt: 'x', system: 'other.md' }] }] },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message: `the system prompt can't be read: "other.md" does not exist`,
      },
    ],
  },
  {
    name: 'an image that is none',
    parts: {
      tasks: [{ id: 'a', turns: [{ prompt: [{ type: 'image', file: 'cat.png' }] }] }],
      files: { 'cat.png': 'meow' },
    },
    mistakes: [{ at: 'tasks.jsonl:1', message: '"cat.png" is no PNG and no JPEG' }],
  },
  {
    name: 'a gold call of a tool that does not exist',
    parts: { module: withFindUser, tasks: gold({ name: 'find_usr', arguments: {} }) },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message: 'gold call 0: unknown tool "find_usr"; did you mean "find_user"?',
      },
    ],
  },
  {
    name: 'a gold call whose arguments do not fit',
    parts: { module: withFindUser, tasks: gold({ name: 'find_user', arguments: { zap: '1' } }) },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message: 'gold call 0, find_user: unknown argument "zap"; did you mean "zip"?',
      },
    ],
  },
  {
    name: 'B2: an id that is too long, and one that is empty',
    parts: {
      tasks: [
        { id: 'x'.repeat(201), turns: [{ prompt: 'x' }] },
        { id: '', turns: [{ prompt: 'x' }] },
      ],
    },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'id: Too big: expected string to have <=200 characters' },
      { at: 'tasks.jsonl:2', message: 'id: Too small: expected string to have >=1 characters' },
    ],
  },
  {
    name: 'B6: a task whose list of turns is empty',
    parts: { tasks: [{ id: 'a', turns: [] }] },
    mistakes: [
      { at: 'tasks.jsonl:1', message: 'turns: Too small: expected array to have >=1 items' },
    ],
  },
]

describe('loadBundle names, of the tasks,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })
})
