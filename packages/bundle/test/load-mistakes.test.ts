import { symlink } from 'node:fs/promises'
import { join } from 'node:path'

import { ConfigError, type Mistake } from '@tiltyard/core'
import { describe, expect, test } from 'vitest'

import { type BundleModule, loadBundle } from '../src/index.ts'
import { type BundleParts, makeBundle, oneTask, writeBundle } from './support/make-bundle.ts'

async function mistakesOf(load: () => Promise<unknown>): Promise<readonly Mistake[]> {
  const error = await load().then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).mistakes
}

const tool = {
  name: 'find_user',
  description: 'Finds.',
  parameters: { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] },
  run: () => 'ann',
} as const
const withTool: BundleModule = { tools: [tool], verifiers: { always: () => 1 } }
const gold = (
  ...calls: { readonly name: string; readonly arguments: Record<string, string> }[]
) => [{ ...oneTask[0]!, gold: { calls } }]

/** Each fixture is a bundle with one thing wrong, and what is said of it. */
const fixtures: readonly {
  readonly name: string
  readonly parts: BundleParts
  readonly mistakes: readonly Mistake[]
}[] = [
  {
    name: 'B1: an unknown key of the manifest, with the nearest one',
    parts: { manifest: { eval: {} } },
    mistakes: [{ at: 'bundle.json:18', message: 'unknown key "eval"; did you mean "evals"?' }],
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
    name: 'a manifest that is no JSON, at the line where it breaks',
    parts: { files: { 'bundle.json': '{\n  "formatVersion": 1,\n  "name" "trial"\n}\n' } },
    mistakes: [{ at: 'bundle.json:3', message: 'this is no JSON' }],
  },
  {
    name: 'a manifest without steps',
    parts: { manifest: { steps: undefined } },
    mistakes: [
      { at: 'bundle.json:1', message: 'steps: Invalid input: expected array, received undefined' },
    ],
  },
  {
    name: 'a format of a later version',
    parts: { manifest: { formatVersion: 2 } },
    mistakes: [{ at: 'bundle.json:2', message: 'formatVersion: Invalid input: expected 1' }],
  },
  {
    name: 'a tool that the module does not have, with the nearest one',
    parts: { manifest: { tools: ['find_usr'] }, module: withTool },
    mistakes: [
      { at: 'bundle.json:19', message: 'unknown tool "find_usr"; did you mean "find_user"?' },
    ],
  },
  {
    name: 'a tool that is listed twice',
    parts: { manifest: { tools: ['find_user', 'find_user'] }, module: withTool },
    mistakes: [{ at: 'bundle.json:20', message: 'tool "find_user" is listed twice' }],
  },
  {
    name: 'two tools of one name, at the module',
    parts: {
      module: { tools: [tool, tool], verifiers: { always: () => 1 } },
      files: { 'bundle.mjs': '// tools\nconst find_user = 1\n' },
    },
    mistakes: [{ at: 'bundle.mjs:2', message: 'two tools are called "find_user"' }],
  },
  {
    name: 'a tool name that no model may call',
    parts: { module: { tools: [{ ...tool, name: 'find user' }], verifiers: { always: () => 1 } } },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: `a tool's name has 1 to 64 letters, digits, "_" and "-"; "find user" isn't one`,
      },
    ],
  },
  {
    name: 'a tool whose JSON Schema is broken',
    parts: {
      module: {
        tools: [{ ...tool, parameters: { type: 'object', properties: { zip: { type: 'text' } } } }],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: expect.stringMatching(
          /tool "find_user": its JSON Schema is broken: .*zip.*type/,
        ) as string,
      },
    ],
  },
  {
    name: 'F11: a tool whose JSON Schema refers to itself without end',
    parts: {
      module: {
        tools: [
          {
            ...tool,
            parameters: {
              type: 'object',
              properties: { tree: { $ref: '#/$defs/a' } },
              $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } },
            },
          },
        ],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message: 'tool "find_user": its JSON Schema refers to itself without end, at "#/$defs/b"',
      },
    ],
  },
  {
    name: 'a tool whose parameters are no object',
    parts: {
      module: {
        tools: [{ ...tool, parameters: { type: 'string' } }],
        verifiers: { always: () => 1 },
      },
    },
    mistakes: [
      {
        at: 'bundle.mjs',
        message:
          'tool "find_user": "parameters" must be a zod object or a JSON Schema of type "object"',
      },
    ],
  },
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
      module: withTool,
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
  {
    name: 'a gold call of a tool that does not exist',
    parts: { module: withTool, tasks: gold({ name: 'find_usr', arguments: {} }) },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message: 'gold call 0: unknown tool "find_usr"; did you mean "find_user"?',
      },
    ],
  },
  {
    name: 'a gold call whose arguments do not fit',
    parts: { module: withTool, tasks: gold({ name: 'find_user', arguments: { zap: '1' } }) },
    mistakes: [
      {
        at: 'tasks.jsonl:1',
        message: 'gold call 0, find_user: unknown argument "zap"; did you mean "zip"?',
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
  {
    name: 'B11: a path that leaves the folder',
    parts: { manifest: { system: '../system.md' } },
    mistakes: [
      {
        at: 'bundle.json:18',
        message: `the system prompt can't be read: "../system.md" leaves the folder`,
      },
    ],
  },
  {
    name: 'B12: secrets without a value, all of them',
    parts: {
      manifest: { secrets: ['A_KEY', 'B_KEY', 'C_KEY'] },
      load: { env: { B_KEY: 'x' } },
    },
    mistakes: [
      { at: 'bundle.json:19', message: 'the secret "A_KEY" has no value' },
      { at: 'bundle.json:21', message: 'the secret "C_KEY" has no value' },
    ],
  },
  {
    name: 'data that the manifest asks for and nobody gave, with where to get it',
    parts: { manifest: { data: 'Clone example/store.' } },
    mistakes: [
      {
        at: 'bundle.json:18',
        message: 'a folder of data is needed, and none was given. Clone example/store.',
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
]

describe('loadBundle names', () => {
  test.each(fixtures)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
  })

  test('B11: a symbolic link', async () => {
    const folder = await writeBundle({})
    await symlink(join(folder, 'tasks.jsonl'), join(folder, 'more.jsonl'))
    expect(await mistakesOf(() => loadBundle(folder))).toEqual([
      {
        at: 'more.jsonl',
        message: 'symbolic links are refused; put the file itself into the bundle',
      },
    ])
  })

  test('a module that throws, at its line', async () => {
    const folder = await writeBundle({ files: { 'bundle.mjs': '\n\nnull.x\n' } })
    const [mistake] = await mistakesOf(() => loadBundle(folder))
    expect(mistake?.at).toBe('bundle.mjs:3')
    expect(mistake?.message).toContain('importing it failed: TypeError')
  })

  test('a module that exports no bundle', async () => {
    const folder = await writeBundle({ files: { 'bundle.mjs': 'export const bundel = {}\n' } })
    expect(await mistakesOf(() => loadBundle(folder))).toEqual([
      {
        at: 'bundle.mjs',
        message: 'it exports no "bundle"; write `export const bundle = defineBundle({ … })`',
      },
    ])
  })

  test('a folder that does not exist, and one that is no bundle', async () => {
    expect(await mistakesOf(() => loadBundle('/nowhere/at/all'))).toEqual([
      { at: '', message: 'there is no such folder' },
    ])
    const folder = await writeBundle({})
    const [mistake] = await mistakesOf(() => loadBundle(join(folder, '..')))
    expect(mistake?.message).toContain('it has no bundle.json')
  })

  test('all mistakes at once, in one error that shows each with its place', async () => {
    const parts = {
      manifest: {
        licence: 'MIT',
        steps: [{ name: 'a', use: 'never' }],
        evals: { test: { ids: ['two'] } },
      },
      tasks: [...oneTask, ...oneTask],
    }
    const mistakes = await mistakesOf(() => makeBundle(parts))
    expect(mistakes.map(({ at }) => at)).toEqual([
      'bundle.json:18',
      'bundle.json:15',
      'tasks.jsonl:2',
      'bundle.json:22',
    ])
    await expect(makeBundle(parts)).rejects.toThrow(
      /bundle\.json:18: unknown key "licence"; did you mean "license"\?/,
    )
  })

  test('a mistake that stands in many tasks at a few places, and then counts', async () => {
    const tasks = Array.from({ length: 40 }, (_, index) => ({
      id: String(index),
      turns: [{ prompt: 'x' }],
      gold: { calls: [{ name: 'gone', arguments: {} }] },
    }))
    const mistakes = await mistakesOf(() => makeBundle({ tasks }))
    expect(mistakes).toHaveLength(6)
    expect(mistakes[5]?.at).toBe('at 35 more places')
  })
})
