import { describe, expect, test } from 'vitest'

import { makeBundle, oneTask } from '../support/make-bundle.ts'
import { mistakesOf, type MistakenBundle } from '../support/mistakes.ts'

const bundles: readonly MistakenBundle[] = [
  {
    name: 'B1: an unknown key of the manifest, with the nearest one',
    parts: { manifest: { eval: {} } },
    mistakes: [{ at: 'bundle.json:18', message: 'unknown key "eval"; did you mean "evals"?' }],
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
]

describe('loadBundle names, of the manifest,', () => {
  test.each(bundles)('$name', async ({ parts, mistakes }) => {
    expect(await mistakesOf(() => makeBundle(parts))).toEqual(mistakes)
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
